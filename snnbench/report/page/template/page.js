"use strict";
// Leaves out of each table the columns that do not fit, lets a reader sort and filter, and unfolds what an address names.

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

// Lets names break after / and _ only, and numbers before their interval.
const letBreak = (table) => {
  const before = (cell, mark) => {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const place = walker.currentNode.data.search(mark);
      if (place >= 0) walker.currentNode.splitText(place + 1).before(document.createElement("wbr"));
    }
  };
  const names = [...table.tBodies[0].rows].map((row) => row.cells[0]);
  const longest = Math.max(0, ...names.flatMap((cell) => cell.textContent.split(/\s/).map((word) => word.length)));
  table.style.setProperty("--name", `${longest + (table.className === "full" ? 2 : 0)}ch`);
  names.forEach((cell) => before(cell, /[/_]./));
  table.querySelectorAll("td.number").forEach((cell) => before(cell, / \(/));
};

const PAPER = 1000; // the width in px of a page of A4 or Letter, were it printed as large as on a screen

// Columns that do not fit leave a table: those that it names as leaving first, then the last ones. The first one stays.
const fitColumns = (table) => {
  const headings = [...table.tHead.rows[0].cells];
  const leaving = (table.dataset.leaving ?? "").split(" ").filter(Boolean).map(Number);
  const last = headings.map((_, column) => column).slice(1).reverse().filter((column) => !leaving.includes(column));
  const [line, onScreen, onPaper, button] = ["p", "span", "span", "button"].map((name) => document.createElement(name));
  line.className = "note columns";
  onPaper.className = "paper";
  button.type = "button";
  line.append(onScreen, onPaper, " ", button);
  table.parentElement.before(line);
  let all = false;

  const leftOut = (room) => {
    const out = new Set();
    const leave = (order, how) => {
      table.classList.add("whole", how);
      const widths = headings.map((heading) => heading.getBoundingClientRect().width);
      table.classList.remove("whole", how);
      const needed = () => widths.reduce((sum, width, column) => sum + (out.has(column) ? 0 : width), 0);
      for (const column of order) if (needed() > room) out.add(column);
    };
    if (leaving.length && room > 480) leave(leaving, "widest");
    leave([...leaving, ...last], "narrowest");
    return [...out].sort((a, b) => a - b);
  };
  const say = (place, out) => {
    place.textContent = out.length ? `Left out: ${out.map((column) => headings[column].textContent).join("; ")}.` : "";
  };
  const fit = () => {
    const out = leftOut(table.parentElement.clientWidth);
    table.dataset.out = out.join(" ");
    table.classList.toggle("whole", all);
    line.hidden = !out.length;
    say(onScreen, out);
    if (all) onScreen.textContent = "This table scrolls sideways.";
    button.textContent = all ? "Fit the page" : "Show all columns";
  };
  button.addEventListener("click", () => {
    all = !all;
    fit();
  });
  new ResizeObserver(fit).observe(table.parentElement);
  addEventListener("beforeprint", () => {
    const out = leftOut(PAPER);
    table.dataset.paper = out.join(" ");
    say(onPaper, out);
    table.classList.toggle("whole", all);
  });
};

const hideLeftOut = (tables) => {
  const sheet = new CSSStyleSheet();
  const most = Math.max(0, ...tables.map((table) => table.tHead.rows[0].cells.length));
  for (let column = 1; column < most; column++) {
    const cells = `tr > :nth-child(${column + 1}) { display: none; }`;
    sheet.insertRule(`@media screen { [data-out~="${column}"]:not(.whole) ${cells} }`);
    sheet.insertRule(`@media print { [data-paper~="${column}"] ${cells} }`);
  }
  document.adoptedStyleSheets = [sheet];
};

// Unfolds what the address names, and shows it.
const reveal = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let folded = target.closest("details"); folded; folded = folded.parentElement.closest("details")) folded.open = true;
  target.scrollIntoView({ block: target.tagName === "TR" ? "center" : "start" });
};

document.querySelectorAll("table.full").forEach((table) => {
  makeSortable(table);
  makeFilterable(table);
});
const tables = [...document.querySelectorAll("article table")];
tables.forEach(letBreak);
hideLeftOut(tables);
tables.forEach(fitColumns);
addEventListener("hashchange", reveal);
reveal();
if (!document.getElementById("charts")) document.documentElement.dataset.charts = "drawn";
