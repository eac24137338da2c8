// Themes: the reader's system decides until the reader does.
const root = document.documentElement;
const themeButton = document.getElementById("theme");
const system = matchMedia("(prefers-color-scheme: dark)");
const remembered = () => { try { return localStorage.getItem("weir-theme"); } catch { return null; } };
const setTheme = theme => {
  root.dataset.theme = theme;
  themeButton.setAttribute("aria-pressed", String(theme === "dark"));
};
themeButton.addEventListener("click", () => {
  const theme = root.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("weir-theme", theme); } catch { /* a page that may not remember forgets */ }
  setTheme(theme);
});
system.addEventListener("change", () => { if (!remembered()) setTheme(system.matches ? "dark" : "light"); });
