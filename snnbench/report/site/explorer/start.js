// What the controls do, and the view of the address.
selects.addEventListener("change", ({ target }) => {
  choose(found(data.choices.map((name, place) => (name === target.name ? target.value : shown.of[place]))));
});
const follow = () => {
  readMatrixChoices(new URLSearchParams(location.hash.slice(1)));
  show(found(fromAddress()));
};
addEventListener("popstate", follow);
addEventListener("hashchange", follow);
document.getElementById("copy-table").addEventListener("click", () => {
  copy(markdown(`${word(shown.about)}, ${measured(shown)}`, COLUMNS, shown.rows.map((row) => cellsOf(shown, row)), [0, 8]), "table");
});
for (const button of document.querySelectorAll(".copy-link")) {
  button.addEventListener("click", () => {
    history.replaceState(null, "", toAddress(shown));
    copy(location.href, "address");
  });
}
if (views.length) follow();
else answer.textContent = "Nothing was timed in these recordings.";
document.documentElement.dataset.charts = "drawn";
