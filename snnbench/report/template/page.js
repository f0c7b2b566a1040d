"use strict";
// Draws every chart in its place. Expressions are interpreted, not compiled, so that the page needs no eval.
(async () => {
  const { configuration, specifications } = JSON.parse(document.getElementById("charts").textContent);
  const options = {
    mode: "vega-lite", renderer: "svg", ast: true, actions: false, defaultStyle: false, config: configuration,
    tooltip: { theme: "custom", disableDefaultStyle: true },
  };
  for (const [name, specification] of Object.entries(specifications)) {
    const place = document.getElementById(name);
    configuration.legend.columns = Math.max(1, Math.floor(place.clientWidth / 165));
    try {
      await vegaEmbed(place, specification, options);
    } catch (error) {
      place.textContent = "This chart could not be drawn; its numbers are in the table below.";
      console.error(name, error);
    }
  }
  document.documentElement.dataset.charts = "drawn";
})();
