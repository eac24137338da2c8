// Charts: drawn when they come near, because a report may have a thousand.
const inks = () => ({
  paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
  "font.color": colour("--ink"), "font.family": "system-ui, Segoe UI, Noto Sans, sans-serif",
  "xaxis.gridcolor": colour("--rule"), "yaxis.gridcolor": colour("--rule"),
  "xaxis.linecolor": colour("--faint"), "yaxis.linecolor": colour("--faint"),
  "modebar.bgcolor": "rgba(0,0,0,0)", "modebar.color": colour("--faint"), "modebar.activecolor": colour("--ink"),
  "hoverlabel.bgcolor": colour("--paper"), "hoverlabel.bordercolor": colour("--rule"), "hoverlabel.font.color": colour("--ink"),
});
const drawPlot = plot => {
  if (plot.dataset.drawn) return;
  plot.dataset.drawn = "true";
  const chart = chartOf(plot);
  const off = [...plot.closest("figure").querySelectorAll(".toggles button[aria-pressed='false']")].map(toggle => toggle.dataset.series);
  for (const trace of chart.data) {
    if (trace.error_x) trace.error_x.color = colour("--ink");
    if (off.includes(trace.legendgroup)) trace.visible = false;
  }
  Plotly.newPlot(plot, chart.data, chart.layout, chart.config).then(() => repaint(plot));
};
// What the page was made with, reduced to what the reader chose.
const chartOf = plot => onlyIn(JSON.parse(plot.parentElement.querySelector("script[type='application/json']").textContent), plot);
function repaint(plot) {
  if (!plot.data) return;
  Plotly.relayout(plot, inks());
  const whiskers = plot.data.flatMap((trace, i) => trace.error_x ? [i] : []);
  if (whiskers.length) Plotly.restyle(plot, { "error_x.color": colour("--ink") }, whiskers);
}

// The traces of a toggle carry its number as their legend group.
const show = (toggle, wanted) => {
  const plot = toggle.closest("figure").querySelector(".plot");
  toggle.setAttribute("aria-pressed", String(wanted));
  if (!plot.data) return;
  const traces = plot.data.flatMap((trace, i) => trace.legendgroup === toggle.dataset.series ? [i] : []);
  if (traces.length) Plotly.restyle(plot, { visible: wanted }, traces);
};
document.addEventListener("click", event => {
  const toggle = event.target.closest(".toggles button");
  if (!toggle) return;
  drawPlot(toggle.closest("figure").querySelector(".plot"));
  show(toggle, toggle.getAttribute("aria-pressed") === "false");
});
