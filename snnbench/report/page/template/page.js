"use strict";
// Draws every chart in its place, and lets a reader sort and filter tables and save the numbers of a chart.
// Expressions of charts are interpreted, not compiled, so that the page needs no eval.

// Whether no legend is cut off: how wide one is shows only when it is drawn.
const fits = (place) =>
  [...place.querySelectorAll(".role-legend")].every(
    (legend) => legend.getBoundingClientRect().right <= place.getBoundingClientRect().right + 1,
  );

const drawCharts = async (source) => {
  const { configuration, specifications } = JSON.parse(source.textContent);
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
};

// The number that a cell begins with, or its text; rows without a number come last.
const sortKey = (row, column) => {
  const text = row.cells[column].textContent.trim();
  const value = parseFloat(text);
  return row.cells[column].classList.contains("number") ? (Number.isNaN(value) ? Infinity : value) : text;
};

const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));

const makeSortable = (table) => {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = [...table.tBodies[0].rows].map((row) => [sortKey(row, column), row]);
      keyed.sort(([a], [b]) => (a === Infinity || b === Infinity ? compare(a, b) || 0 : compare(a, b) * (down ? -1 : 1)));
      table.tBodies[0].append(...keyed.map(([, row]) => row));
    });
  });
};

// A button that copies a text. A page from a file may lack the clipboard; then a selection is copied.
const offerCopy = (text) => {
  const [line, button, status] = ["p", "button", "output"].map((name) => document.createElement(name));
  line.className = "copy";
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    let copied = true;
    try {
      await navigator.clipboard.writeText(text.textContent);
    } catch {
      getSelection().selectAllChildren(text);
      copied = document.execCommand("copy");
    }
    status.textContent = copied ? "copied" : "selected: copy it by keyboard";
  });
  line.append(button, status);
  text.before(line);
};
document.querySelectorAll("section > pre").forEach(offerCopy);

const makeFilterable = (table) => {
  const rows = [...table.tBodies[0].rows];
  const [label, input, count] = ["label", "input", "output"].map((name) => document.createElement(name));
  label.className = "filter";
  input.type = "search";
  input.placeholder = "words that a row must have";
  const update = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${rows.length} rows`;
  };
  input.addEventListener("input", update);
  label.append("Filter", input, count);
  table.parentElement.before(label);
  update();
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
  document.querySelectorAll("table.full").forEach((table) => {
    makeSortable(table);
    makeFilterable(table);
  });
  document.querySelectorAll("figure").forEach(offerNumbers);
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView({ block: "center" });
  const source = document.getElementById("charts");
  if (source) await drawCharts(source);
  document.documentElement.dataset.charts = "drawn";
})();
