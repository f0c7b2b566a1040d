"use strict";
// Draws every chart in its place. Expressions are interpreted, not compiled, so that the page needs no eval.
// Whether no legend is cut off: how wide one is shows only when it is drawn.
const fits = (place) =>
  [...place.querySelectorAll(".role-legend")].every(
    (legend) => legend.getBoundingClientRect().right <= place.getBoundingClientRect().right + 1,
  );

(async () => {
  const { configuration, specifications } = JSON.parse(document.getElementById("charts").textContent);
  const options = {
    mode: "vega-lite", renderer: "svg", ast: true, actions: false, defaultStyle: false, config: configuration,
    tooltip: { theme: "custom", disableDefaultStyle: true },
  };
  for (const [name, specification] of Object.entries(specifications)) {
    const place = document.getElementById(name);
    configuration.axisY.labelLimit = Math.min(configuration.axisY.labelLimit, 0.4 * place.clientWidth);
    try {
      for (let columns = Math.ceil(place.clientWidth / 120); columns > 0; columns--) {
        configuration.legend.columns = columns;
        await vegaEmbed(place, specification, options);
        if (fits(place)) break;
      }
    } catch (error) {
      place.textContent = "This chart could not be drawn; its numbers are in the table below.";
      console.error(name, error);
    }
  }
  document.documentElement.dataset.charts = "drawn";
})();
