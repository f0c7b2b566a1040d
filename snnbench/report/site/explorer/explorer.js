// The first page: the choices stand in the address, so a link shows what its sender saw.
"use strict";

const data = JSON.parse(document.getElementById("views").textContent);
const word = (number) => data.words[number];
const views = data.views.map((view) => ({ ...view, of: view.of.map(word) }));
const [selects, answer, source, chart, table, sizes, apart, status] = ["choices", "answer", "source", "chart", "table", "sizes", "apart", "status"]
  .map((id) => document.getElementById(id));
const COLUMNS = ["library", "ms", "95 % interval", "x fastest", "x floor", "peak MiB", "first call ms", "trials", "verdict"];
const [NAME, MS, INTERVAL, LEADS, TRIALS, PEAK, FIRST, VERDICT, CELL] = [0, 1, 2, 3, 4, 5, 6, 7, 8];

const SIZE = data.choices.indexOf("size");

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

const toAddress = (view) => `#${new URLSearchParams(data.choices.map((name, place) => [name, view.of[place]]))}`;

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
  const head = make("tr", {}, ...COLUMNS.map((name, place) => make("th", { scope: "col", textContent: name, className: `c${place}` })));
  const rows = view.rows.map((row) => {
    const [name, ...cells] = cellsOf(view, row);
    const link = make("a", { href: `cells/${row[CELL]}.html`, textContent: name });
    const others = cells.map((text, place) => make("td", { textContent: text, className: `c${place + 1}` }));
    return make("tr", {}, make("th", { scope: "row" }, link), ...others);
  });
  table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
};

// The words of each size that differ between these views.
const differences = (alike) => {
  const parts = alike.map((view) => view.of[SIZE].split(", "));
  const shared = parts[0].filter((part) => parts.every((each) => each.includes(part)));
  return parts.map((each) => each.filter((part) => !shared.includes(part)).join(", "));
};

// Every contender at every size that was measured alike. A colour says how far a time is from the best of its column.
const drawSizes = (view) => {
  const isAlike = (one) => one.in[0] === view.in[0] && one.of.every((text, place) => place === SIZE || text === view.of[place]);
  const alike = views.filter(isAlike);
  sizes.closest("section").hidden = alike.length < 2;
  const headings = differences(alike).map((text, column) => {
    const button = make("button", { type: "button", textContent: text });
    button.addEventListener("click", () => choose(alike[column]));
    const heading = make("th", { scope: "col" }, button);
    if (alike[column] === view) heading.setAttribute("aria-current", "true");
    return heading;
  });
  const best = alike.map((one) => one.rows[0][MS]);
  const names = [...new Set([view, ...alike].flatMap((one) => one.rows.map(nameOf)))];
  const rows = names.map((name) => {
    const cells = alike.map((one, column) => {
      const row = one.rows.find((each) => nameOf(each) === name);
      const reason = one.apart.find(([each]) => word(each) === name);
      if (!row) return make("td", { className: "none", textContent: reason ? "–" : "·", title: reason ? word(reason[1]) : "not asked" });
      const cell = make("td", { textContent: short(row[MS]), title: `${times(row[MS] / best[column])} the fastest` });
      const near = Math.max(0, 1 - Math.log10(row[MS] / best[column]));
      cell.style.setProperty("--near", `${Math.round(45 * near)}%`);
      if (row[LEADS]) cell.classList.add("leads");
      return cell;
    });
    return make("tr", {}, make("th", { scope: "row", textContent: name }), ...cells);
  });
  sizes.replaceChildren(make("thead", {}, make("tr", {}, make("th", { scope: "col", textContent: "ms" }), ...headings)), make("tbody", {}, ...rows));
};

const markdown = (view) => {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const rows = view.rows.map((row) => line(cellsOf(view, row)));
  const heading = `${word(view.about)}, ${view.of.at(-1)}, ${view.of[0]}, ${view.in.slice(0, 2).map(word).join(", ")}`;
  return [heading, "", line(COLUMNS), line(COLUMNS.map((_, place) => (place && place < 8 ? "---:" : "---"))), ...rows, ""].join("\n");
};

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
  drawSizes(view);
  const others = view.apart.map(([name, reason]) => make("li", {}, make("b", { textContent: word(name) }), `: ${word(reason)}`));
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

selects.addEventListener("change", ({ target }) => {
  choose(found(data.choices.map((name, place) => (name === target.name ? target.value : shown.of[place]))));
});
addEventListener("popstate", () => show(found(fromAddress())));
addEventListener("hashchange", () => show(found(fromAddress())));
document.getElementById("copy-table").addEventListener("click", () => copy(markdown(shown), "table"));
document.getElementById("copy-link").addEventListener("click", () => {
  history.replaceState(null, "", toAddress(shown));
  copy(location.href, "address");
});
if (views.length) show(found(fromAddress()));
else answer.textContent = "Nothing was timed in these recordings.";
document.documentElement.dataset.charts = "drawn";
