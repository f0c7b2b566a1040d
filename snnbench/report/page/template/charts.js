"use strict";
// Draws every chart in its place, and lets a reader copy and save charts and their numbers.
// Expressions of charts are interpreted, not compiled, so that the page needs no eval.

// Whether no legend is cut off: how wide one is shows only when it is drawn.
const fits = (place) =>
  [...place.querySelectorAll(".role-legend")].every(
    (legend) => legend.getBoundingClientRect().right <= place.getBoundingClientRect().right + 1,
  );

const tooltip = { theme: "custom", disableDefaultStyle: true };
const options = { mode: "vega-lite", renderer: "svg", ast: true, actions: false, defaultStyle: false, tooltip };
const drawn = {};

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
      drawn[name] = { specification, configuration: JSON.stringify(configuration) };
    } catch (error) {
      place.textContent = "This chart could not be drawn; its numbers are in the table below.";
      console.error(name, error);
    }
  }
};

// The numbers of a chart as JSON: a list of objects, by the names of the columns of its table.
const numbersOf = (figure) => {
  const table = figure.querySelector("table");
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  const rows = [...table.tBodies[0].rows].map((row) =>
    Object.fromEntries([...row.cells].map((cell, column) => {
      const text = cell.textContent;
      const isNumber = cell.classList.contains("number") && text.trim() !== "" && !Number.isNaN(Number(text));
      return [names[column], isNumber ? Number(text) : text];
    })),
  );
  return new Blob([JSON.stringify(rows, null, 1)], { type: "application/json" });
};

const MARGIN = 16;
const LINE = 26;

// A chart as it is shown, under its title and above a line that says where its numbers come from.
const pictureOf = async (figure, type) => {
  const place = figure.querySelector(".chart");
  const style = getComputedStyle(document.documentElement);
  const value = (_, name) => style.getPropertyValue(name).trim();
  const { specification, configuration } = drawn[place.id];
  const config = JSON.parse(configuration.replace(/var\((--\w+)\)/g, value));
  const sized = { ...specification, width: place.clientWidth };
  const { view } = await vegaEmbed(document.createElement("div"), sized, { ...options, tooltip: false, config });
  const chart = await view.toCanvas(2);
  const svg = new DOMParser().parseFromString(await view.toSVG(), "image/svg+xml").documentElement;
  view.finalize();
  const [wide, high] = [chart.width / 2, chart.height / 2];
  const texts = [
    [figure.querySelector("figcaption").textContent, `600 14px ${config.font}`, value("", "--ink"), MARGIN + 14],
    [figure.closest("article").dataset.source, `11px ${config.font}`, value("", "--label"), high + 2 * LINE + MARGIN],
  ];
  const canvas = document.createElement("canvas");
  const pen = canvas.getContext("2d");
  const lengths = texts.map(([text, font]) => ((pen.font = font), pen.measureText(text).width));
  const width = Math.ceil(Math.max(wide, ...lengths)) + 2 * MARGIN;
  const height = high + 2 * (LINE + MARGIN);
  if (type === "image/png") {
    [canvas.width, canvas.height] = [2 * width, 2 * height];
    pen.scale(2, 2);
    pen.fillStyle = value("", "--ground");
    pen.fillRect(0, 0, width, height);
    pen.drawImage(chart, MARGIN, MARGIN + LINE, wide, high);
    for (const [text, font, colour, y] of texts) {
      [pen.font, pen.fillStyle] = [font, colour];
      pen.fillText(text, MARGIN, y);
    }
    return new Promise((done) => canvas.toBlob(done, type));
  }
  const made = (name, attributes, text = "") => {
    const element = document.createElementNS(svg.namespaceURI, name);
    Object.entries(attributes).forEach(([key, given]) => element.setAttribute(key, given));
    element.textContent = text;
    return element;
  };
  const whole = made("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  svg.setAttribute("x", MARGIN);
  svg.setAttribute("y", MARGIN + LINE);
  whole.append(made("rect", { width, height, fill: value("", "--ground") }), svg);
  whole.append(...texts.map(([text, font, fill, y]) => made("text", { x: MARGIN, y, fill, style: `font: ${font}` }, text)));
  return new Blob([new XMLSerializer().serializeToString(whole)], { type });
};

// SVG is copied as text, which drawing programs take, since few browsers copy it as a picture.
const offerFiles = (figure) => {
  const [line, said] = ["div", "output"].map((name) => document.createElement(name));
  line.className = "save";
  const button = (name, label, click) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = name;
    made.setAttribute("aria-label", label);
    made.addEventListener("click", click);
    line.append(" ", made);
  };
  const save = (blob, name, before = "") => {
    const link = document.createElement("a");
    link.download = `${figure.querySelector(".chart").id}.${name.toLowerCase()}`;
    link.href = URL.createObjectURL(blob);
    link.click();
    URL.revokeObjectURL(link.href);
    said.textContent = `${before}Saved as ${link.download}.`;
  };
  const pictures = [["PNG", "image/png", "image/png"], ["SVG", "image/svg+xml", "text/plain"]];
  line.append("Copy");
  for (const [name, type, copied] of pictures) {
    button(name, `Copy the chart as ${name}`, async () => {
      const picture = pictureOf(figure, type);
      try {
        const blob = picture.then((made) => new Blob([made], { type: copied }));
        await navigator.clipboard.write([new ClipboardItem({ [copied]: blob })]);
        said.textContent = `Copied as ${name}.`;
      } catch {
        save(await picture, name, "The browser does not let this page copy. ");
      }
    });
  }
  line.append(" Save");
  for (const [name, type] of pictures) {
    button(name, `Save the chart as ${name}`, async () => save(await pictureOf(figure, type), name));
  }
  button("JSON", "Save the numbers as JSON", () => save(numbersOf(figure), "JSON"));
  line.append(said);
  figure.querySelector("details").before(line);
};

(async () => {
  document.querySelectorAll("figure").forEach(offerFiles);
  await drawCharts(document.getElementById("charts"));
  document.documentElement.dataset.charts = "drawn";
})();
