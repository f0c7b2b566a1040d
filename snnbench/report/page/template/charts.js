"use strict";
// Draws every chart in its place, and lets a reader save its numbers.
// Expressions of charts are interpreted, not compiled, so that the page needs no eval.

// Whether no legend is cut off: how wide one is shows only when it is drawn.
const fits = (place) =>
  [...place.querySelectorAll(".role-legend")].every(
    (legend) => legend.getBoundingClientRect().right <= place.getBoundingClientRect().right + 1,
  );

const tooltip = { theme: "custom", disableDefaultStyle: true };
const options = { mode: "vega-lite", renderer: "svg", ast: true, actions: false, defaultStyle: false, tooltip };

const drawCharts = async (source) => {
  const { configuration, specifications } = JSON.parse(source.textContent);
  for (const [name, specification] of Object.entries(specifications)) {
    const place = document.getElementById(name);
    configuration.axisY.labelLimit = Math.min(configuration.axisY.labelLimit, 0.4 * place.clientWidth);
    configuration.legend.labelLimit = Math.min(configuration.legend.labelLimit, 0.45 * place.clientWidth);
    try {
      for (let columns = Math.ceil(place.clientWidth / 120); columns > 0; columns--) {
        configuration.legend.columns = columns;
        await vegaEmbed(place, specification, { ...options, config: configuration });
        if (fits(place)) break;
      }
    } catch (error) {
      place.textContent = "This chart could not be drawn; its numbers are in the table below.";
      console.error(name, error);
    }
  }
};

// The numbers of a chart as JSON: a list of objects, by the names of the columns of its table.
const offerNumbers = (figure) => {
  const table = figure.querySelector("table");
  const link = document.createElement("a");
  link.className = "json";
  link.textContent = "JSON";
  link.download = `${figure.querySelector(".chart").id}.json`;
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  const rows = [...table.tBodies[0].rows].map((row) =>
    Object.fromEntries([...row.cells].map((cell, column) => {
      const text = cell.textContent;
      const isNumber = cell.classList.contains("number") && text.trim() !== "" && !Number.isNaN(Number(text));
      return [names[column], isNumber ? Number(text) : text];
    })),
  );
  link.href = URL.createObjectURL(new Blob([JSON.stringify(rows, null, 1)], { type: "application/json" }));
  figure.querySelector("details").before(link);
};

(async () => {
  document.querySelectorAll("figure").forEach(offerNumbers);
  await drawCharts(document.getElementById("charts"));
  document.documentElement.dataset.charts = "drawn";
})();
