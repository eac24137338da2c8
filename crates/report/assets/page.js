"use strict";
// Sorting, filtering, themes and charts of a weir report. Knows the page's markup, nothing of what was measured.
(() => {
  const root = document.documentElement;
  const colour = name => getComputedStyle(root).getPropertyValue(name).trim();

  // Themes: the reader's system decides until the reader does.
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const remembered = () => { try { return localStorage.getItem("weir-theme"); } catch { return null; } };
  const setTheme = theme => {
    root.dataset.theme = theme;
    button.setAttribute("aria-pressed", String(theme === "dark"));
    document.querySelectorAll(".plot").forEach(repaint);
  };
  button.addEventListener("click", () => {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("weir-theme", theme); } catch { /* a page that may not remember forgets */ }
    setTheme(theme);
  });
  system.addEventListener("change", () => { if (!remembered()) setTheme(system.matches ? "dark" : "light"); });

  // Charts: drawn when they come near, because a report may have a hundred.
  const inks = () => ({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    "font.color": colour("--ink"), "font.family": "system-ui, Segoe UI, Noto Sans, sans-serif",
    "xaxis.gridcolor": colour("--rule"), "yaxis.gridcolor": colour("--rule"),
    "xaxis.linecolor": colour("--faint"), "yaxis.linecolor": colour("--faint"),
    "modebar.bgcolor": "rgba(0,0,0,0)", "modebar.color": colour("--faint"), "modebar.activecolor": colour("--ink"),
    "hoverlabel.bgcolor": colour("--paper"), "hoverlabel.bordercolor": colour("--rule"), "hoverlabel.font.color": colour("--ink"),
  });
  const draw = plot => {
    if (plot.dataset.drawn) return;
    plot.dataset.drawn = "true";
    const chart = JSON.parse(plot.parentElement.querySelector("script[type='application/json']").textContent);
    for (const trace of chart.data) if (trace.error_x) trace.error_x.color = colour("--ink");
    Plotly.newPlot(plot, chart.data, chart.layout, chart.config).then(() => repaint(plot));
  };
  function repaint(plot) {
    if (!plot.data) return;
    Plotly.relayout(plot, inks());
    const whiskers = plot.data.flatMap((trace, i) => trace.error_x ? [i] : []);
    if (whiskers.length) Plotly.restyle(plot, { "error_x.color": colour("--ink") }, whiskers);
  }
  const seen = new IntersectionObserver(entries => {
    for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); draw(entry.target); }
  }, { rootMargin: "400px" });
  document.querySelectorAll(".plot").forEach(plot => seen.observe(plot));
  addEventListener("beforeprint", () => document.querySelectorAll(".plot").forEach(plot => { if (plot.offsetParent) draw(plot); }));

  // The traces of a toggle carry its number as their legend group.
  document.querySelectorAll(".toggles button").forEach(toggle => toggle.addEventListener("click", () => {
    const plot = toggle.closest("figure").querySelector(".plot");
    draw(plot);
    const show = toggle.getAttribute("aria-pressed") === "false";
    toggle.setAttribute("aria-pressed", String(show));
    const traces = plot.data.flatMap((trace, i) => trace.legendgroup === toggle.dataset.series ? [i] : []);
    Plotly.restyle(plot, { visible: show }, traces);
  }));

  // Tables: a click on a header sorts, the next turns it round. Rows of a fixed body stay on top.
  const key = (row, column) => {
    const cell = row.cells[column];
    const number = cell.dataset.sort;
    return number === undefined ? cell.textContent.trim() : Number(number);
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return -1;
    if (typeof b === "number") return 1;
    return a.localeCompare(b, "en", { numeric: true });
  };
  document.querySelectorAll("table.sortable th button").forEach(header => header.addEventListener("click", () => {
    const th = header.parentElement;
    const down = th.getAttribute("aria-sort") === "ascending";
    for (const other of th.parentElement.cells) other.setAttribute("aria-sort", "none");
    th.setAttribute("aria-sort", down ? "descending" : "ascending");
    for (const body of th.closest("table").tBodies) {
      if (body.classList.contains("fixed")) continue;
      const rows = [...body.rows].sort((a, b) => compare(key(a, th.cellIndex), key(b, th.cellIndex)));
      body.append(...(down ? rows.reverse() : rows));
    }
  }));
  document.querySelectorAll("input[data-filters]").forEach(input => input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const body of document.getElementById(input.dataset.filters).tBodies) {
      if (body.classList.contains("fixed")) continue;
      for (const row of body.rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every(word => text.includes(word));
      }
    }
  }));

  setTheme(remembered() ?? (system.matches ? "dark" : "light"));
})();
