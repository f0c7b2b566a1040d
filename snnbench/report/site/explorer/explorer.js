// The first page: the choices stand in the address, so a link shows what its sender saw.
"use strict";

const data = JSON.parse(document.getElementById("views").textContent);
const word = (number) => data.words[number];
const views = data.views.map((view) => ({ ...view, of: view.of.map(word) }));
const [selects, answer, source, chart, table, apart, status] = ["choices", "answer", "source", "chart", "table", "apart", "status"]
  .map((id) => document.getElementById(id));
const COLUMNS = ["library", "ms", "95 % interval", "x fastest", "x floor", "peak MiB", "first call ms", "trials", "verdict"];
const [NAME, MS, INTERVAL, LEADS, TRIALS, PEAK, FIRST, VERDICT, CELL, MEASURES] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

const short = (value) => (value === null || value === undefined ? "" : Number(value.toPrecision(3)).toString());
const times = (value) => `${value < 10 ? value.toFixed(2) : short(value)}×`;
const make = (name, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
const listed = (names) => (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`);

const library = (contender) => contender.split("/")[0];
const nameOf = (row) => word(row[NAME]);

// The view with the wanted choices. A choice that no view has with the earlier ones gives way.
const found = (wanted) => {
  let left = views;
  data.choices.forEach((_, place) => {
    const same = left.filter((view) => view.of[place] === wanted[place]);
    if (same.length) left = same;
    else if (left.some((view) => view.default)) left = left.filter((view) => view.of[place] === left.find((one) => one.default).of[place]);
    else left = left.filter((view) => view.of[place] === left[0].of[place]);
  });
  return left[0];
};

const fromAddress = () => {
  const given = new URLSearchParams(location.hash.slice(1));
  const first = views.find((view) => view.default) ?? views[0];
  return data.choices.map((name, place) => given.get(name) ?? first.of[place]);
};

const toAddress = (view) => `#${new URLSearchParams([...data.choices.map((name, place) => [name, view.of[place]]), ...matrixChoices()])}`;

const leaders = (view) => view.rows.filter((row) => row[LEADS]);

// Who is fastest, who cannot be told apart, and how far behind the next is.
const sentence = (view) => {
  const first = leaders(view);
  const next = view.rows.find((row) => !first.includes(row));
  const [best] = first;
  const behind = next ? ` ${nameOf(next)} takes ${times(next[MS] / best[MS])} as long.` : "";
  if (view.rows.length === 1) return `Only ${nameOf(best)} was timed here: ${short(best[MS])} ms.`;
  if (!view.tested) return `In one trial each, ${nameOf(best)} took the least time, ${short(best[MS])} ms.${behind} One trial shows no spread.`;
  if (first.length === 1) return `${nameOf(best)} is fastest, for certain: ${short(best[MS])} ms.${behind}`;
  return `${listed(first.map(nameOf))} cannot be told apart, from ${short(best[MS])} ms on.${behind}`;
};

const drawChart = (view) => {
  const ends = view.rows.map((row) => (row[INTERVAL] ? row[INTERVAL][1] : row[MS]));
  const most = Math.max(...ends, view.floor ?? 0);
  const share = (ms) => `${(100 * ms) / most}%`;
  const first = leaders(view);
  const bars = view.rows.map((row) => {
    const bar = make("span", { className: "bar" });
    bar.style.width = share(row[MS]);
    const track = make("span", { className: "track" }, bar);
    if (row[INTERVAL]) {
      const whisker = make("span", { className: "whisker" });
      whisker.style.left = share(row[INTERVAL][0]);
      whisker.style.width = share(row[INTERVAL][1] - row[INTERVAL][0]);
      track.append(whisker);
    }
    if (view.floor) {
      const floor = make("span", { className: "floor" });
      floor.style.left = share(view.floor);
      track.append(floor);
    }
    const name = make("a", { className: "name", href: `libraries/${data.libraries[library(nameOf(row))]}.html`, textContent: nameOf(row) });
    const value = make("span", { className: "value", textContent: `${short(row[MS])} ms` });
    const factor = make("span", { className: "factor", textContent: times(row[MS] / view.rows[0][MS]) });
    return make("li", { className: first.includes(row) ? "leads" : "" }, name, track, value, factor);
  });
  chart.replaceChildren(...bars);
};

const cellsOf = (view, row) => [
  nameOf(row),
  short(row[MS]),
  row[INTERVAL] ? `${short(row[INTERVAL][0])} to ${short(row[INTERVAL][1])}` : "",
  times(row[MS] / view.rows[0][MS]),
  view.floor ? times(row[MS] / view.floor) : "",
  short(row[PEAK]),
  short(row[FIRST]),
  String(row[TRIALS]),
  row[VERDICT],
];

const drawTable = (view) => {
  const texts = view.rows.map((row) => cellsOf(view, row));
  const isEmpty = COLUMNS.map((_, place) => texts.every((cells) => cells[place] === ""));
  const head = make("tr", {}, ...COLUMNS.map((name, place) => make("th", { scope: "col", textContent: name, className: `c${place}`, hidden: isEmpty[place] })));
  const rows = view.rows.map((row, line) => {
    const [name, ...cells] = texts[line];
    const link = make("a", { href: `cells/${row[CELL]}.html`, textContent: name });
    const others = cells.map((text, place) => make("td", { textContent: text, className: `c${place + 1}`, hidden: isEmpty[place + 1] }));
    return make("tr", {}, make("th", { scope: "row" }, link), ...others);
  });
  table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
};

// A table in Markdown: `texts` are the places of columns that are not numbers.
const markdown = (heading, columns, rows, texts) => {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const rule = line(columns.map((_, place) => (texts.includes(place) ? "---" : "---:")));
  return [heading, "", line(columns), rule, ...rows.map(line), ""].join("\n");
};

const measured = (view) => `${view.of.at(-1)}, ${view.of[0]}, ${view.in.slice(0, 2).map(word).join(", ")}`;

const drawChoices = (view) => {
  let left = views;
  data.choices.forEach((name, place) => {
    const select = selects.querySelector(`[name="${name}"]`);
    const words = [...new Set(left.map((one) => one.of[place]))];
    select.replaceChildren(...words.map((text) => make("option", { value: text, textContent: text })));
    select.value = view.of[place];
    select.disabled = words.length < 2;
    left = left.filter((one) => one.of[place] === view.of[place]);
  });
};

let shown;
const show = (view) => {
  shown = view;
  drawChoices(view);
  answer.textContent = sentence(view);
  const [recording, day, file] = view.in.map(word);
  source.replaceChildren(
    `${word(view.about)}, ${view.of.at(-1)}. Measured ${day} on ${view.of[0].split(": ").at(-1)}: `,
    make("a", { href: `recordings/${file}.html`, textContent: recording }),
    ".",
  );
  drawChart(view);
  drawTable(view);
  drawMatrix(view);
  const others = view.apart.map(([name, , reason]) => make("li", {}, make("b", { textContent: word(name) }), `: ${word(reason)}`));
  apart.replaceChildren(...others);
  apart.closest("details").hidden = !others.length;
  document.documentElement.dataset.shown = view.of.join("; ");
};

const copy = async (text, what) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  status.textContent = `${what} copied`;
};

const choose = (view) => {
  history.pushState(null, "", toAddress(view));
  show(view);
};

