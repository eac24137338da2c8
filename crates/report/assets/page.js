// What is far away is built and fitted to its place when the reader comes near, and all that is open when the page is printed.
const PACKED = "text/deflate";
const build = holder => {
  const script = holder.querySelector(":scope > script");
  if (!script) return;
  holder.wanted = true;
  if (script.type === PACKED) return;
  const template = document.createElement("template");
  template.innerHTML = script.textContent.replaceAll("<\\/script", "</script");
  holder.replaceChildren(template.content);
  holder.classList.remove("lazy");
  watch(holder);
  if (anythingChosen()) applyOnly(holder);
};
// Sections of a large report are compressed. All are unpacked as soon as the page is there, so that printing finds them.
const unpack = async script => {
  const bytes = Uint8Array.from(atob(script.textContent), letter => letter.charCodeAt(0));
  script.textContent = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  script.type = "text/html";
  if (script.parentElement.wanted) build(script.parentElement);
};
(async () => { for (const script of document.querySelectorAll(`script[type="${PACKED}"]`)) await unpack(script); })();
const near = new IntersectionObserver(seen => {
  for (const entry of seen) {
    if (!entry.isIntersecting) continue;
    near.unobserve(entry.target);
    if (entry.target.classList.contains("plot")) fit.observe(entry.target);
    else build(entry.target);
  }
}, { rootMargin: "400px" });
const watch = within => within.querySelectorAll(".plot, .lazy").forEach(part => near.observe(part));
watch(document);

// To a place in a part that may not be built yet.
const goTo = id => {
  const target = document.getElementById(id);
  if (!target) return;
  target.querySelectorAll(":scope > .lazy").forEach(build);
  target.scrollIntoView();
};
document.addEventListener("click", event => {
  const link = event.target.closest("a[href^='#']");
  if (!link) return;
  place = link.getAttribute("href").slice(1);
  if (!anythingChosen()) return;
  event.preventDefault();
  writeAddress();
  goTo(place);
});
addEventListener("hashchange", () => { readAddress(); describeChoice(); applyOnly(document); if (place) goTo(place); });

// Paper: light, no wider than a sheet, and nothing that is folded up.
let before = null;
addEventListener("beforeprint", () => {
  before = root.dataset.theme;
  document.querySelectorAll("main > section > .lazy").forEach(build);
  root.dataset.theme = "light";
  printing = true;
  document.querySelectorAll(".plot").forEach(layout);
});
addEventListener("afterprint", () => {
  setTheme(before ?? "light");
  printing = false;
  document.querySelectorAll(".plot").forEach(layout);
});

readAddress();
describeChoice();
setTheme(remembered() ?? (system.matches ? "dark" : "light"));
if (anythingChosen()) { applyOnly(document); if (place) goTo(place); }
