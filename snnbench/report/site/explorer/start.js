// What the controls do, and the view of the address.
selects.addEventListener("change", ({ target }) => {
  const [before, changed] = [shown, data.choices.indexOf(target.name)];
  choose(found(before.of.map((text, place) => (place === changed ? target.value : text)), changed));
  const others = data.choices.filter((_, place) => place !== changed && shown.of[place] !== before.of[place]);
  const said = others.map((name) => `${name}: ${shown.of[data.choices.indexOf(name)]}`);
  moved.textContent = said.length ? `This choice changed another one. Now ${said.join("; ")}.` : "";
});
const follow = () => {
  readMatrixChoices(new URLSearchParams(location.hash.slice(1)));
  show(found(fromAddress()));
};
addEventListener("popstate", follow);
addEventListener("hashchange", follow);
document.getElementById("copy-table").addEventListener("click", ({ target }) => {
  copy(target, markdown(`${word(shown.about)}, ${measured(shown)}`, COLUMNS, shown.rows.map((row) => cellsOf(shown, row)), [0, 8]), "table");
});
for (const button of document.querySelectorAll(".copy-link")) {
  button.addEventListener("click", () => {
    history.replaceState(null, "", toAddress(shown));
    copy(button, location.href, "address");
  });
}
if (views.length) follow();
else answer.textContent = "Nothing was timed in these recordings.";
document.documentElement.dataset.charts = "drawn";
