// What of the page is shown: products, profiles, workloads and loads, chosen by buttons and remembered in the address as
// #product=a,b&workload=c, with &at=<anchor> for the place.
const only = document.getElementById("only");
const KEYS = ["product", "profile", "workload", "load"];
const entries = only ? JSON.parse(only.querySelector("script").textContent).entries : [];
const chosen = Object.fromEntries(KEYS.map(name => [name, new Set()]));
let place = "";

const passes = (name, value) => chosen[name].size === 0 || chosen[name].has(value);
const entryShown = entry => entry.baseline || (passes("product", entry.product) && passes("profile", entry.profile));
const anythingChosen = () => KEYS.some(name => chosen[name].size > 0);
// An entry by how it is called: its label, or its title beside its profile; marks such as * and (failed) come after.
const plain = text => text.replace(/ \*$/, "").replace(/ \(failed\)$/, "").trim();
const labelShown = text => {
  const own = entries.filter(entry => entry.label === plain(text));
  if (own.length) return own.some(entryShown);
  const titled = entries.filter(entry => entry.title === plain(text));
  return titled.length === 0 || titled.some(entryShown);
};

const readAddress = () => {
  const text = decodeURI(location.hash.slice(1));
  if (!text.includes("=")) {
    if (text) place = text;
    return;
  }
  const given = new Map(text.split("&").map(part => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)]));
  for (const name of KEYS) chosen[name] = new Set((given.get(name) ?? "").split(",").filter(Boolean));
  place = given.get("at") ?? "";
};
const writeAddress = () => {
  const parts = KEYS.filter(name => chosen[name].size).map(name => `${name}=${[...chosen[name]].join(",")}`);
  if (place && parts.length) parts.push(`at=${place}`);
  const hash = parts.length ? parts.join("&") : place;
  history.replaceState(null, "", hash ? `#${encodeURI(hash)}` : location.pathname + location.search);
};

const onlyInTable = table => {
  const heads = [...table.tHead.rows[0].cells].map(th => th.querySelector("button")?.firstChild?.textContent ?? "");
  const at = Object.fromEntries(["Product", "Profile", "Workload", "Load"].map(name => [name, heads.indexOf(name)]));
  // Columns that are products: all but the first few may be hidden.
  const hiddenColumns = heads.flatMap((head, i) => entries.some(e => e.label === head) && !labelShown(head) ? [i] : []);
  for (const row of table.rows) {
    [...row.cells].forEach((cell, i) => { cell.hidden = hiddenColumns.includes(i); });
    if (row.parentElement === table.tHead || row.parentElement.classList.contains("fixed")) continue;
    const cell = name => at[name] < 0 ? null : row.cells[at[name]].firstChild?.textContent ?? "";
    const [product, profile] = [cell("Product"), cell("Profile")];
    const own = product === null ? [] : entries.filter(entry =>
      entry.label === plain(product) || (entry.title === plain(product) && (profile === null || entry.profile === profile || entry.baseline)));
    const wanted = (own.length === 0 || own.some(entryShown))
      && (cell("Workload") === null || passes("workload", cell("Workload")))
      && (cell("Load") === null || passes("load", cell("Load")));
    hide(row, "not-shown", !wanted);
  }
};

const onlyInFigure = figure => {
  for (const row of figure.querySelectorAll(".row")) row.classList.toggle("off", !labelShown(row.dataset.label));
  for (const toggle of figure.querySelectorAll(".toggles button")) show(toggle, labelShown(toggle.textContent));
  const plot = figure.querySelector(".plot");
  if (plot) layout(plot);
};

// All of it, or what was just built.
const applyOnly = within => {
  within.querySelectorAll("table.sortable").forEach(onlyInTable);
  within.querySelectorAll("figure.chart").forEach(onlyInFigure);
  within.querySelectorAll("[data-workload]").forEach(part => {
    part.hidden = !passes("workload", part.dataset.workload) || !passes("load", part.dataset.load);
  });
};
const describeChoice = () => {
  if (!only) return;
  for (const button of only.querySelectorAll("button[data-key]")) {
    button.setAttribute("aria-pressed", String(chosen[button.dataset.key].has(button.dataset.name)));
  }
  const words = KEYS.filter(name => chosen[name].size).map(name => `${name} ${[...chosen[name]].join(", ")}`);
  only.querySelector("output").textContent = words.length ? `now: ${words.join("; ")}` : "products, profiles, workloads, loads";
  if (words.length) only.open = true;
};
only?.addEventListener("click", event => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.classList.contains("all")) KEYS.forEach(name => chosen[name].clear());
  else {
    const names = chosen[button.dataset.key];
    if (!names.delete(button.dataset.name)) names.add(button.dataset.name);
  }
  writeAddress();
  describeChoice();
  applyOnly(document);
});
