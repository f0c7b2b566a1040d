// Every contender in every case of a recording, and two of them against each other.
const [matrix, chips, against] = ["matrix", "chips", "against"].map((id) => document.getElementById(id));
const measureOf = (place) => (view, row) => row[MEASURES + place];
const SHOWN = {
  time: { unit: "ms", of: (view, row) => row[MS] },
  ratio: { unit: "× the fastest", of: (view, row) => row[MS] / view.rows[0][MS], words: times },
  floor: { unit: "× the floor", of: (view, row) => view.floor && row[MS] / view.floor, words: times },
  memory: { unit: "peak MiB", of: (view, row) => row[PEAK] },
  "first call": { unit: "ms", of: (view, row) => row[FIRST] },
  ...Object.fromEntries(data.measures.map(([name, unit], place) => [name, { unit, of: measureOf(place) }])),
};
const GROUPS = ["network", "neuron", "format"];
const LIBRARY = "library";
let what = "time";
let order = "";
let only = [];
let two = [];

const matrixChoices = () => [
  ...(what === "time" ? [] : [["show", what]]),
  ...(order ? [["sort", order]] : []),
  ...only.map((text) => ["only", text]),
  ...two.map((name) => ["between", name]),
];

const readMatrixChoices = (given) => {
  what = Object.hasOwn(SHOWN, given.get("show")) ? given.get("show") : "time";
  order = given.get("sort") ?? "";
  only = given.getAll("only");
  two = [...new Set(given.getAll("between"))].slice(0, 2);
};

const change = (action) => {
  action();
  history.replaceState(null, "", toAddress(shown));
  drawMatrix(shown);
};

const groupsOf = (view) => GROUPS.map((name) => `${name}: ${view.of[data.choices.indexOf(name)]}`);
const inRecording = (view) => views.filter((one) => one.in[0] === view.in[0] && one.of[0] === view.of[0] && one.of.at(-1) === view.of.at(-1));

// The words in which these views differ; all words of a single one.
const headings = (alike) => {
  const parts = alike.map((view) => view.title.map(word));
  if (alike.length === 1) return [parts[0].join(", ")];
  const shared = parts[0].filter((part) => parts.every((each) => each.includes(part)));
  return parts.map((each) => each.filter((part) => !shared.includes(part)).join(", ") || "this case");
};

// A chip of each value of a group; of none chosen, all are shown.
const drawChips = (alike) => {
  const groups = GROUPS.map((name, place) => [name, alike.map((view) => groupsOf(view)[place])]);
  const names = alike.flatMap((view) => view.rows.map((row) => `${LIBRARY}: ${library(nameOf(row))}`));
  const shownGroups = [...groups, [LIBRARY, names.sort()]].map(([name, texts]) => [name, [...new Set(texts)]]);
  only = only.filter((text) => shownGroups.some(([, texts]) => texts.includes(text)));
  const lines = shownGroups
    .filter(([, texts]) => texts.length > 1)
    .map(([name, texts]) => {
      const buttons = texts.map((text) => {
        const chip = make("button", { type: "button", className: "chip", textContent: text.slice(name.length + 2) });
        chip.setAttribute("aria-pressed", String(only.includes(text)));
        chip.addEventListener("click", () => change(() => { only = only.includes(text) ? only.filter((one) => one !== text) : [...only, text]; }));
        return chip;
      });
      return make("div", { role: "group", ariaLabel: `Only this ${name}` }, make("span", { textContent: name }), ...buttons);
    });
  chips.replaceChildren(...lines);
};

const allows = (text) => {
  const [group] = text.split(": ");
  const chosen = only.filter((one) => one.startsWith(`${group}: `));
  return !chosen.length || chosen.includes(text);
};

// The columns and rows that the chips leave, the rows in the chosen order.
const selected = (view) => {
  const alike = inRecording(view).filter((one) => groupsOf(one).every(allows));
  const columns = alike.length ? alike : [view];
  const titles = headings(columns);
  const known = [view, ...columns].flatMap((one) => [...one.rows.map(nameOf), ...one.apart.map(([name]) => word(name))]);
  const names = [...new Set(known)].filter((name) => allows(`${LIBRARY}: ${library(name)}`));
  const place = titles.indexOf(order);
  const rowOf = (name, column) => columns[column].rows.find((row) => nameOf(row) === name);
  const valueOf = (name, column) => {
    const row = rowOf(name, column);
    return row ? SHOWN[what].of(columns[column], row) ?? null : null;
  };
  if (order === LIBRARY) names.sort();
  else if (place >= 0) names.sort((a, b) => (valueOf(a, place) ?? Infinity) - (valueOf(b, place) ?? Infinity) || 0);
  const there = names.filter((name) => columns.some((one) => [...one.rows.map(nameOf), ...one.apart.map(([each]) => word(each))].includes(name)));
  return { columns, titles, names: there, rowOf, valueOf };
};

const sortButton = (title) => {
  const button = make("button", { type: "button", className: "sort", textContent: order === title ? "▾" : "↕", title: `Sort by ${title}`, ariaLabel: `Sort by ${title}` });
  button.setAttribute("aria-pressed", String(order === title));
  button.addEventListener("click", () => change(() => { order = order === title ? "" : title; }));
  return button;
};

const words = (value) => (SHOWN[what].words ?? short)(value);

const cellIn = ({ columns, rowOf, valueOf }, name, column, best) => {
  const row = rowOf(name, column);
  const [, sign, reason] = columns[column].apart.find(([each]) => word(each) === name) ?? [];
  if (!row) return make("td", { className: "none", textContent: sign ?? "·", title: reason === undefined ? "not asked" : word(reason) });
  const value = valueOf(name, column);
  if (value === null) return make("td", { className: "none", title: `no ${what} was measured` });
  const cell = make("td", { textContent: words(value), title: `${short(row[MS])} ms, ${times(row[MS] / columns[column].rows[0][MS])} the fastest, ${row[VERDICT]}` });
  if (row[VERDICT] === "equivalent") cell.prepend("≈ ");
  cell.style.setProperty("--near", `${Math.round(45 * Math.max(0, 1 - Math.log10(value / best)))}%`);
  if (columns[column].tested && row[LEADS] && (what === "time" || what === "ratio" || what === "floor")) cell.classList.add("leads");
  return cell;
};

const drawMatrix = (view) => {
  drawChips(inRecording(view));
  for (const input of document.querySelectorAll("#shown input")) {
    const isThere = inRecording(view).some((one) => one.rows.some((row) => (SHOWN[input.value].of(one, row) ?? null) !== null));
    input.disabled = !isThere;
    input.checked = input.value === what;
  }
  const picture = selected(view);
  const { columns, titles, names, valueOf } = picture;
  const best = columns.map((_, column) => Math.min(...names.map((name) => valueOf(name, column)).filter((value) => value > 0)));
  const heads = titles.map((title, column) => {
    const button = make("button", { type: "button", textContent: title, title: "Show this case above" });
    button.addEventListener("click", () => choose(columns[column]));
    const head = make("th", { scope: "col" }, make("span", {}, button, sortButton(title)));
    if (columns[column] === view) head.setAttribute("aria-current", "true");
    return head;
  });
  const rows = names.map((name) => {
    const button = make("button", { type: "button", textContent: name, title: "Compare with another contender" });
    button.setAttribute("aria-pressed", String(two.includes(name)));
    button.addEventListener("click", () => change(() => { two = two.includes(name) ? two.filter((one) => one !== name) : [...two, name].slice(-2); }));
    return make("tr", {}, make("th", { scope: "row" }, button), ...columns.map((_, column) => cellIn(picture, name, column, best[column])));
  });
  const corner = make("th", { scope: "col" }, make("span", {}, SHOWN[what].unit, sortButton(LIBRARY)));
  matrix.replaceChildren(make("thead", {}, make("tr", {}, corner, ...heads)), make("tbody", {}, ...rows));
  drawAgainst(view, picture);
};

// The word of two contenders of a view by the test of `rank`, the second over the first, and the ends of the interval.
const difference = (view, first, second) => {
  const [a, b] = [first, second].map((name) => view.rows.findIndex((row) => nameOf(row) === name));
  const [base, other] = [Math.min(a, b), Math.max(a, b)];
  const place = (base * (2 * view.rows.length - base - 1)) / 2 + other - base - 1;
  const [low, high] = view.ends.slice(2 * place, 2 * place + 2);
  return { base: view.rows[base], other: view.rows[other], word: data.decisions[view.pairs[place]], low, high };
};

const judgement = (view, first, second) => {
  const { base, other, word: decision, low, high } = difference(view, first, second);
  const factor = low && !high ? `surely at least ${times(low)} as long` : `${times(other[MS] / base[MS])} as long`;
  const interval = high ? ` (95 % interval ${short(low)} to ${short(high)})` : "";
  const said = `${short(other[MS])} ms against ${short(base[MS])} ms, ${factor}${interval}.`;
  if (!low) return `${nameOf(other)} took longer in one trial each, which shows no spread: ${said}`;
  if (decision === "slower") return `${nameOf(other)} is slower: ${said}`;
  return `${decision === "same" ? "No difference above 5 %" : "Not told apart"}: ${nameOf(other)} takes ${said}`;
};

const apartIn = (view, name) => {
  const [, sign, reason] = view.apart.find(([each]) => word(each) === name) ?? [];
  return reason === undefined ? "not asked" : `${sign} ${word(reason)}`;
};

const drawAgainst = (view, { columns, titles }) => {
  two = two.filter((name) => inRecording(view).some((one) => [...one.rows.map(nameOf), ...one.apart.map(([each]) => word(each))].includes(name)));
  against.hidden = two.length < 2;
  if (against.hidden) return;
  const [first, second] = two;
  const lines = columns.flatMap((one, column) => {
    const untimed = two.filter((name) => !one.rows.some((row) => nameOf(row) === name));
    const text = untimed.map((name) => `${name}: ${apartIn(one, name)}`).join("; ") || judgement(one, first, second);
    const className = untimed.length ? "none" : "";
    return [make("dt", { textContent: titles[column], className }), make("dd", { textContent: text, className })];
  });
  const close = make("button", { type: "button", textContent: "Close" });
  close.addEventListener("click", () => change(() => { two = []; }));
  against.replaceChildren(make("h3", {}, `${first} and ${second}`, close), make("dl", {}, ...lines));
};

document.getElementById("shown").append(
  ...Object.keys(SHOWN).map((name) => make("label", {}, make("input", { type: "radio", name: "shown", value: name }), name)),
);
document.getElementById("shown").addEventListener("change", ({ target }) => change(() => { what = target.value; }));
document.getElementById("copy-matrix").addEventListener("click", ({ target }) => {
  const picture = selected(shown);
  const rows = picture.names.map((name) => [name, ...picture.columns.map((_, column) => cellIn(picture, name, column, 1).textContent)]);
  copy(target, markdown(`${what}, ${SHOWN[what].unit}, ${measured(shown)}`, [LIBRARY, ...picture.titles], rows, [0]), "table");
});
