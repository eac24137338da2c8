// Charts are drawn by weir, as SVG. This script fits a drawing to its place, shows the values below the pointer, hides
// series, and zooms. An axis says in `data-x` and `data-y` what its pixels mean.
const SCALES = {
  linear: [value => value, at => at],
  log: [value => Math.log10(value), at => 10 ** at],
  percentile: [share => -Math.log10(Math.max(1 - share, 1e-12)), at => 1 - 10 ** -at],
};
// `low` and `high` are on the scale; `from` and `to` are pixels of the drawing, `start` and `end` those of the screen;
// `shown` is the part of the axis that is zoomed into, 0 to 1.
const axisOf = text => {
  const [scale, low, high, from, to, ...unit] = text.split(" ");
  const [forward, back] = SCALES[scale];
  const axis = { scale, low: forward(+low), high: forward(+high), from: +from, to: +to, start: +from, end: +to, shown: [0, 1], unit: unit.join(" ") };
  axis.factor = () => (axis.end - axis.start) / (axis.to - axis.from) / (axis.shown[1] - axis.shown[0]);
  axis.screen = pixel => axis.start + (axis.end - axis.start) * ((pixel - axis.from) / (axis.to - axis.from) - axis.shown[0]) / (axis.shown[1] - axis.shown[0]);
  axis.fraction = screen => axis.shown[0] + (screen - axis.start) / (axis.end - axis.start) * (axis.shown[1] - axis.shown[0]);
  axis.value = pixel => back(axis.low + (pixel - axis.from) / (axis.to - axis.from) * (axis.high - axis.low));
  axis.place = value => axis.screen(axis.from + (forward(value) - axis.low) / (axis.high - axis.low) * (axis.to - axis.from));
  axis.shows = screen => screen >= Math.min(axis.start, axis.end) - 1 && screen <= Math.max(axis.start, axis.end) + 1;
  return axis;
};
const charts = new WeakMap();
const chartOf = plot => {
  if (!charts.has(plot)) {
    const svg = plot.querySelector("svg");
    const root = svg.querySelector("g");
    const { width, height } = svg.viewBox.baseVal;
    const moved = selector => [...svg.querySelectorAll(selector)].map(part => ({ part, x: part.transform.baseVal[0].matrix.e, y: part.transform.baseVal[0].matrix.f }));
    charts.set(plot, {
      plot, svg, root, width, height, x: axisOf(root.dataset.x), y: root.dataset.y === undefined ? null : axisOf(root.dataset.y),
      points: moved(".points > g"), rules: moved(".rules > g"), rows: moved(".row"),
    });
  }
  return charts.get(plot);
};
const element = (name, attributes, text = "") => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  made.textContent = text;
  return made;
};

// Values where the shown part of an axis has ticks, at most so many or a few more.
const evenly = (low, high, most) => {
  const least = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].find(step => step * power >= least * .999) * power;
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step);
};
const ticksOf = (axis, most) => {
  const [low, high] = axis.shown.map(part => axis.low + part * (axis.high - axis.low));
  const decades = Array.from({ length: Math.ceil(high) - Math.floor(low) + 1 }, (_, i) => Math.floor(low) + i);
  let values;
  if (axis.scale === "linear") values = evenly(low, high, most);
  else if (axis.scale === "percentile") {
    const parts = high - low < 1.5 ? [1, .5, .2] : [1];
    values = [...(high - low < 1.5 ? [] : [.5]), ...decades.flatMap(power => parts.map(part => 1 - part * 10 ** -power))];
  } else if (high - low < .35) values = evenly(10 ** low, 10 ** high, most);
  else {
    const steps = high - low <= 1.05 ? [1, 2, 3, 4, 5, 7] : high - low <= 3.5 ? [1, 2, 5] : [1];
    values = decades.flatMap(power => steps.map(step => step * 10 ** power));
  }
  const text = value => axis.scale === "percentile" ? `${+(value * 100).toFixed(7)} %` : value.toLocaleString("en", { maximumSignificantDigits: 6 });
  return values.sort((a, b) => a - b).map(value => [axis.place(value), text(value)]).filter(([at]) => axis.shows(at));
};
const drawTicks = (chart, top, bottom) => {
  const { svg, x, y } = chart;
  let free = -Infinity;
  const across = ticksOf(x, Math.min(8, (x.end - x.start) / 75)).flatMap(([at, text]) => {
    const half = text.length * 3.4;
    const fits = at - half > free;
    if (fits) free = at + half + 6;
    return [element("path", { d: `M${at} ${top}V${bottom}` }), ...(fits ? [element("text", { x: at, y: bottom + 18 }, text)] : [])];
  });
  svg.querySelector(".ticks.x").replaceChildren(...across);
  if (y) svg.querySelector(".ticks.y").replaceChildren(...ticksOf(y, 7).flatMap(([at, text]) => [
    element("path", { d: `M${x.start} ${at}H${x.end}` }), element("text", { x: x.start - 7, y: at + 4 }, text)]));
};

const zoomed = chart => [chart.x, chart.y].some(axis => axis && axis.shown[1] - axis.shown[0] < 1);
// What is zoomed into ends where the axes end.
const clip = (chart, top, bottom) => {
  chart.svg.querySelector("clipPath")?.remove();
  const id = `clip-${chart.plot.parentElement.id}`;
  const { start, end } = chart.x;
  if (zoomed(chart)) {
    const area = element("clipPath", { id });
    area.append(element("rect", { x: start, y: top, width: end - start, height: bottom - top }));
    chart.svg.prepend(area);
  }
  for (const marks of chart.svg.querySelectorAll(".marks")) marks.setAttribute("clip-path", zoomed(chart) ? `url(#${id})` : "none");
};

const NARROW = 560;
// Bars: rows that are shown close up, and where there is little room labels stand above their bars.
const layoutBars = (chart, width) => {
  const { svg, root, x } = chart;
  const above = width < NARROW ? 18 : 0;
  if (above) x.start = 2;
  const factor = x.factor();
  let top = 10;
  for (const { part } of chart.rows) {
    if (part.classList.contains("off")) continue;
    part.setAttribute("transform", `translate(0 ${top})`);
    top += +part.dataset.height + above;
    const label = part.querySelector(".label");
    const beside = label.dataset;
    beside.text ??= label.textContent;
    beside.y ??= label.getAttribute("y");
    label.textContent = above ? part.dataset.label : beside.text;
    label.setAttribute("x", above ? 8 : x.start - 10);
    label.setAttribute("y", above ? 13 : beside.y);
    label.style.textAnchor = above ? "start" : "end";
    part.querySelector(".one")?.setAttribute("transform", `matrix(${factor} 0 0 1 ${x.screen(0)} ${above})`);
    part.querySelector(".below")?.setAttribute("d", `M0 ${+part.dataset.height + above - 5}H${x.end}`);
    const hidden = part.querySelector(".bar.off") !== null;
    let before = 0;
    for (const bar of part.querySelectorAll(".bar")) {
      bar.setAttribute("transform", `translate(0 ${above})`);
      for (const path of bar.querySelectorAll("path")) path.setAttribute("transform", `matrix(${factor} 0 0 1 ${x.screen(-before)} 0)`);
      if ("stacked" in root.dataset && bar.classList.contains("off")) before += bar.querySelector("path").getBBox().width;
      const end = bar.querySelector(".end");
      if (!end) continue;
      const at = x.screen(+end.getAttribute("x"));
      end.setAttribute("transform", `translate(${Math.min(at, x.end) - end.getAttribute("x")} 0)`);
      end.style.display = at < x.start || ("stacked" in root.dataset && hidden) ? "none" : "";
    }
  }
  drawTicks(chart, 0, top);
  clip(chart, -100, 10_000);
  svg.querySelector(".axis").setAttribute("d", `M${x.start} 0V${top}`);
  return top;
};
const layoutLines = chart => {
  const { svg, x, y } = chart;
  const [top, bottom] = [y.to, y.from];
  svg.querySelector(".grid").setAttribute("transform", `matrix(${x.factor() / 20} 0 0 ${y.factor() / 20} ${x.screen(x.from)} ${y.screen(y.to)})`);
  for (const point of chart.points) {
    point.part.setAttribute("transform", `translate(${x.screen(point.x)} ${y.screen(point.y)})`);
    point.part.querySelector(".interval")?.setAttribute("transform", `scale(1 ${y.factor()})`);
  }
  let free = -Infinity;
  for (const rule of chart.rules) {
    const at = x.screen(rule.x);
    const text = rule.part.querySelector("text");
    rule.part.setAttribute("transform", `translate(${at} ${rule.y})`);
    rule.part.style.display = x.shows(at) ? "" : "none";
    text.style.display = at > free ? "" : "none";
    if (at > free && x.shows(at)) free = at + text.textContent.length * 6 + 12;
  }
  drawTicks(chart, top, bottom);
  clip(chart, top - 3, bottom + 3);
  svg.querySelector(".axis").setAttribute("d", `M${x.start} ${bottom}H${x.end}`);
  return bottom;
};
// Paper is as wide as a sheet.
const SHEET = 680;
let printing = false;
const layout = plot => {
  const width = printing ? SHEET : plot.clientWidth;
  if (!width) return;
  const chart = chartOf(plot);
  const { svg, x, y } = chart;
  x.start = x.from;
  x.end = Math.max(x.to + width - chart.width, x.from + 60);
  const bottom = y ? layoutLines(chart) : layoutBars(chart, width);
  const name = svg.querySelector(".name");
  name.setAttribute("x", Math.max((x.start + x.end) / 2, name.getComputedTextLength() / 2));
  name.setAttribute("y", bottom + 37);
  const height = bottom + 42;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  chart.bottom = bottom;
  plot.dataset.fitted = width;
};
const fit = new ResizeObserver(seen => seen.forEach(({ target }) => layout(target)));

const show = (toggle, wanted) => {
  toggle.setAttribute("aria-pressed", String(wanted));
  const plot = toggle.closest("figure").querySelector(".plot");
  const series = [...toggle.parentElement.children].indexOf(toggle);
  plot.querySelectorAll(`[data-s="${series}"]`).forEach(part => part.classList.toggle("off", !wanted));
  return plot;
};
document.addEventListener("click", event => {
  const toggle = event.target.closest(".toggles button");
  if (toggle) layout(show(toggle, toggle.getAttribute("aria-pressed") === "false"));
});

// Values: the point that is nearest, and what others have at the same place.
const digits = value => value === 0 ? "0" : value.toLocaleString("en", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });
const share = value => `${(value * 100).toFixed(Math.max(0, Math.ceil(SCALES.percentile[0](value) - 1e-6) - 1))} %`;
const pointsOf = path => (path.getAttribute("d").match(/M[^M]+/g) ?? []).flatMap(piece => {
  let [x, y, ...steps] = piece.match(/-?\d+/g).map(Number);
  const points = [[x, y]];
  for (let i = 0; i + 1 < steps.length; i += 2) if (steps[i] || steps[i + 1]) points.push([x += steps[i], y += steps[i + 1]]);
  return points;
});
// Each series with its points in pixels of the drawing; those of a curve say their values themselves.
const seriesOf = chart => chart.series ??= chart.points.length
  ? [...chart.svg.querySelectorAll(".points")].map(part => ({ part, name: "", colour: part.getAttribute("fill"),
      points: chart.points.filter(point => point.part.parentElement === part).map(({ x, y, part }) => [x, y, part.dataset]) }))
  : [...chart.svg.querySelectorAll(".grid path[data-s]")].map(part => ({ part, name: part.dataset.part ?? "", colour: part.getAttribute("stroke"),
      points: pointsOf(part).map(([x, y]) => [chart.x.from + x / 20, chart.y.to + y / 20]) }));
const nameOf = (chart, series) => chart.plot.closest("figure").querySelectorAll(".toggles button")[series]?.textContent ?? "";
const valueOf = (chart, [x, y, own]) => `${own ? own.v : digits(chart.y.value(y))} ${chart.y.unit}`;
const whereOf = (chart, [x, , own]) => {
  const axis = chart.svg.querySelector(".name").textContent.replace(/[,(].*/, "").trim();
  const value = own ? `${own.x} ${chart.x.unit}` : chart.x.scale === "percentile" ? share(chart.x.value(x)) : `${digits(chart.x.value(x))} ${chart.x.unit}`;
  return `${axis} ${value}`.trim();
};
const MOST_VALUES = 12;
const nearestPoints = (chart, [left, top]) => {
  const found = [];
  for (const series of seriesOf(chart)) {
    if (series.part.classList.contains("off")) continue;
    let best = null;
    for (const point of series.points) {
      const [x, y] = [chart.x.screen(point[0]), chart.y.screen(point[1])];
      if (!chart.x.shows(x) || !chart.y.shows(y)) continue;
      const away = Math.hypot((x - left) * 4, y - top);
      if (!best || away < best.away) best = { series, point, x, y, away };
    }
    if (best) found.push(best);
  }
  found.sort((a, b) => a.away - b.away);
  const [nearest] = found;
  if (!nearest) return null;
  const beside = found.filter(other => Math.abs(other.x - nearest.x) < 4).slice(0, MOST_VALUES).sort((a, b) => a.y - b.y);
  return { at: [nearest.x, nearest.y], heading: whereOf(chart, nearest.point), rows: beside.map(other => ({
    colour: other.series.colour, nearest: other === nearest,
    text: `${nameOf(chart, other.series.part.dataset.s)} ${other.series.name}`.trim(), value: valueOf(chart, other.point),
  })) };
};
const nearestBar = (chart, [left, top]) => {
  const box = chart.svg.getBoundingClientRect();
  const bars = [...chart.svg.querySelectorAll(".row:not(.off) .bar:not(.off)")].map(bar => {
    const own = bar.querySelector("path").getBoundingClientRect();
    const [across, down] = [Math.max(own.left - box.left - left, left - own.right + box.left, 0), Math.abs((own.top + own.bottom) / 2 - box.top - top)];
    return { bar, own, away: down * 1000 + across, down };
  });
  const best = bars.reduce((best, next) => !best || next.away < best.away ? next : best, null);
  if (!best || best.down > 20) return null;
  const path = best.bar.querySelector("path");
  return { at: null, heading: best.bar.closest(".row").dataset.label, rows: [{
    colour: path.getAttribute(path.classList.contains("hollow") ? "stroke" : "fill"), nearest: true, text: nameOf(chart, best.bar.dataset.s), value: `${best.bar.dataset.v} ${chart.x.unit}`,
  }] };
};
const tipOf = plot => {
  let tip = plot.querySelector(".tip");
  if (!tip) {
    tip = document.createElement("div");
    tip.className = "tip";
    plot.append(tip);
  }
  return tip;
};
const hideValues = plot => {
  plot.querySelector(".spot")?.remove();
  const tip = plot.querySelector(".tip");
  if (tip) tip.hidden = true;
};
const showValues = (plot, pointer) => {
  if (!plot.dataset.fitted) layout(plot);
  const chart = chartOf(plot);
  const found = chart.y ? nearestPoints(chart, pointer) : nearestBar(chart, pointer);
  hideValues(plot);
  if (!found) return;
  const tip = tipOf(plot);
  const lines = found.rows.map(({ colour, nearest, text, value }) => {
    const line = document.createElement(nearest ? "b" : "span");
    const swatch = document.createElement("i");
    swatch.style.background = colour;
    line.append(swatch, [text, value].filter(Boolean).join(" "));
    return line;
  });
  tip.replaceChildren(found.heading, ...lines);
  tip.hidden = false;
  const [x, y] = found.at ?? pointer;
  if (found.at) chart.svg.append(element("circle", { class: "spot", cx: x, cy: y, r: 6 }));
  const left = x + 14 + tip.offsetWidth > plot.clientWidth ? Math.max(0, x - 14 - tip.offsetWidth) : x + 14;
  tip.style.left = `${left}px`;
  tip.style.top = `${Math.max(0, y - tip.offsetHeight - 8)}px`;
};

// Zoom: what is dragged over is shown, along one axis or both; a double click shows all again, and so does a button.
const LEAST = 8;
const FINEST = 1 / 500;
let drag = null;
const inPlot = (plot, event) => {
  const box = plot.querySelector("svg").getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};
const zoom = (axis, a, b) => {
  const part = [axis.fraction(a), axis.fraction(b)].sort((a, b) => a - b).map(at => Math.min(1, Math.max(0, at)));
  if (part[1] - part[0] >= FINEST) axis.shown = part;
};
const afterZoom = plot => {
  const figure = plot.closest("figure");
  figure.querySelector(".reset")?.remove();
  if (zoomed(chartOf(plot))) {
    const reset = document.createElement("button");
    reset.type = "button";
    reset.className = "reset";
    reset.textContent = "Show all of the axes";
    plot.after(reset);
  }
  hideValues(plot);
  layout(plot);
};
const resetZoom = plot => {
  const chart = chartOf(plot);
  for (const axis of [chart.x, chart.y]) if (axis) axis.shown = [0, 1];
  afterZoom(plot);
};
const plotOf = event => event.target.closest?.(".plot");
document.addEventListener("pointerdown", event => {
  const plot = plotOf(event);
  if (plot && event.button === 0) drag = { plot, from: inPlot(plot, event) };
});
document.addEventListener("pointermove", event => {
  const plot = drag?.plot ?? plotOf(event);
  if (!plot) return document.querySelectorAll(".tip:not([hidden])").forEach(tip => hideValues(tip.parentElement));
  const to = inPlot(plot, event);
  if (!drag) return showValues(plot, to);
  const chart = chartOf(plot);
  const [width, height] = [Math.abs(to[0] - drag.from[0]), Math.abs(to[1] - drag.from[1])];
  if (width < LEAST && height < LEAST) return;
  event.preventDefault();
  hideValues(plot);
  const bottom = chart.bottom;
  const top = chart.y ? chart.y.end : 0;
  // A flat or narrow rectangle is meant along one axis.
  drag.x = width >= LEAST && (!chart.y || width > height / 4);
  drag.y = chart.y && height >= LEAST * 2 && height > width / 4;
  drag.to = to;
  drag.area ??= chart.svg.appendChild(element("rect", { class: "area" }));
  const [x, w] = drag.x ? [Math.min(to[0], drag.from[0]), width] : [chart.x.start, chart.x.end - chart.x.start];
  const [y, h] = drag.y ? [Math.min(to[1], drag.from[1]), height] : [top, bottom - top];
  for (const [key, value] of Object.entries({ x, y, width: w, height: h })) drag.area.setAttribute(key, value);
});
const dropDrag = () => { drag?.area?.remove(); drag = null; };
document.addEventListener("pointerup", () => {
  const { plot, from, to, x, y } = drag ?? {};
  dropDrag();
  if (!to) return;
  const chart = chartOf(plot);
  if (x) zoom(chart.x, from[0], to[0]);
  if (y) zoom(chart.y, from[1], to[1]);
  afterZoom(plot);
});
document.addEventListener("pointercancel", dropDrag);
document.addEventListener("dblclick", event => { const plot = plotOf(event); if (plot) resetZoom(plot); });
document.addEventListener("click", event => {
  const reset = event.target.closest("button.reset");
  if (reset) resetZoom(reset.closest("figure").querySelector(".plot"));
});
