// The first page: the choices stand in the address, so a link shows what its sender saw.
"use strict";

const data = JSON.parse(document.getElementById("views").textContent);
const word = (number) => data.words[number];
const views = data.views.map((view) => ({ ...view, of: view.of.map(word) }));
const [selects, moved, answer, source, chart, table, apart] = ["choices", "moved", "answer", "source", "chart", "table", "apart"]
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

const [MACHINE, NETWORK, SIZE] = ["machine", "network", "size"].map((name) => data.choices.indexOf(name));
// How much each choice weighs where not all can be had: machine, network, size, neuron, format, phase.
const WEIGHTS = [64, 32, 1, 8, 4, 16];

// How alike a size is to a wanted one: the share of the wanted parts that it has; the fewer others, the better.
const likeness = (size, wanted) => {
  const [parts, all] = [size, wanted].map((text) => text.split(", "));
  return all.filter((part) => parts.includes(part)).length / all.length - parts.length / 100;
};

// The view that has the wanted choices, the changed one first of all, and else as many of them as can be had.
const found = (wanted, changed = -1) => {
  const merit = (view) => data.choices.reduce((sum, _, place) => {
    const isSame = view.of[place] === wanted[place];
    const share = place === SIZE ? likeness(view.of[SIZE], wanted[SIZE]) + isSame : Number(isSame);
    return sum + (place === changed ? 1000 * isSame : WEIGHTS[place] * share);
  }, -view.place / 1e6);
  return views.reduce((best, view) => (merit(view) > merit(best) ? view : best));
};

const fromAddress = () => {
  const given = new URLSearchParams(location.hash.slice(1));
  const first = views.find((view) => view.place === 0);
  return data.choices.map((name, place) => given.get(name) ?? first.of[place]);
};

const toAddress = (view) => `#${new URLSearchParams([...data.choices.map((name, place) => [name, view.of[place]]), ...matrixChoices()])}`;

const isContended = (row) => row[VERDICT].endsWith(", contended");
const leaders = (view) => view.rows.filter((row) => row[LEADS]);

// Who is fastest, who cannot be told apart, and how far behind the next is.
const sentence = (view) => {
  const first = leaders(view);
  const next = view.rows.find((row) => !first.includes(row) && !isContended(row));
  const [best] = first;
  const behind = next ? ` ${nameOf(next)} takes ${times(next[MS] / best[MS])} as long.` : "";
  const slower = next ? ` ${nameOf(next)} is slower: ${times(next[MS] / best[MS])} as long as ${nameOf(best)}.` : "";
  const contended = view.rows.filter(isContended).map(nameOf);
  const unjudged = contended.length ? ` Not judged, since other processes disturbed it: ${listed(contended)}.` : "";
  if (view.rows.length === 1) return `Only ${nameOf(best)} was timed here: ${short(best[MS])} ms.`;
  if (!view.tested) {
    const isSingle = view.rows.every((row) => row[TRIALS] === 1);
    const why = isSingle ? " One trial shows no spread." : " No test: single trials, or other processes disturbed them.";
    return `${isSingle ? "In one trial each, " : ""}${nameOf(best)} took the least time, ${short(best[MS])} ms.${behind}${why}`;
  }
  if (first.length === 1) return `${nameOf(best)} is fastest by the test: ${short(best[MS])} ms.${slower}${unjudged}`;
  return `No test tells ${listed(first.map(nameOf))} apart, from ${short(best[MS])} ms on.${slower}${unjudged}`;
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

// Every choice of this machine and network. Those that would change another choice stand apart.
const drawChoices = (view) => {
  data.choices.forEach((name, place) => {
    const pool = views.filter((one) => (place <= MACHINE || one.of[MACHINE] === view.of[MACHINE]) && (place <= NETWORK || one.of[NETWORK] === view.of[NETWORK]));
    const words = [...new Set(pool.map((one) => one.of[place]))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const fits = (text) => pool.some((one) => one.of.every((other, at) => other === (at === place ? text : view.of[at])));
    const option = (text) => make("option", { value: text, textContent: text });
    const others = words.filter((text) => !fits(text));
    const apart = others.length ? [make("optgroup", { label: "with another choice beside it" }, ...others.map(option))] : [];
    const select = selects.querySelector(`[name="${name}"]`);
    select.replaceChildren(...words.filter(fits).map(option), ...apart);
    select.value = view.of[place];
    select.disabled = words.length < 2;
  });
};

let shown;
const show = (view) => {
  shown = view;
  drawChoices(view);
  moved.textContent = "";
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

// Copies a text, and says so beside the button.
const copy = async (button, text, what) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  for (const said of document.querySelectorAll(".said")) said.remove();
  button.after(make("span", { className: "said", role: "status", textContent: `${what} copied` }));
};

const choose = (view) => {
  history.pushState(null, "", toAddress(view));
  show(view);
};

