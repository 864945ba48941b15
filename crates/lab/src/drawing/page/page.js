"use strict";
// Draws the interactive figures of a report, and filters its claims.
// Text of the report is put in as text: with textContent, or escaped where the library reads markup.
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const touch = matchMedia("(pointer: coarse)");
  const symbols = {
    circle: "circle", square: "square", triangle: "triangle-up", diamond: "diamond", cross: "x", star: "star", plus: "cross",
    hexagon: "hexagon",
  };
  const dashes = { solid: "solid", dashed: "8px,4px", dotted: "2px,3px" };

  const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const number = (value) => (value === null ? "-" : String(Number(value.toPrecision(6))).replace("-", "\u2212"));

  // The colour itself, or lighter until it is seen on a dark card.
  const seen = (colour) => {
    if (!dark.matches) return colour;
    let parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    const light = () => 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    while (light() < 110) parts = parts.map((part) => Math.min(255, Math.round(part + (255 - part) * 0.15) + 1));
    return `rgb(${parts.join(",")})`;
  };

  const wrapped = (text, most) => {
    const lines = [""];
    for (const word of text.split(/\s+/)) {
      const line = lines[lines.length - 1];
      if (line && line.length + word.length > most) lines.push(word);
      else lines[lines.length - 1] = line ? `${line} ${word}` : word;
    }
    return lines.map(escaped).join("<br>");
  };

  const hover = (figure, curve, point) => {
    const lines = [`<b>${wrapped(curve.label, 44)}</b>`];
    lines.push(`${escaped(figure.x.label)}: ${number(point.x)}`, `${escaped(figure.y.label)}: ${number(point.y)}`);
    if (point.low !== null || point.high !== null) lines.push(`95 % interval: ${number(point.low)} to ${number(point.high)}`);
    if (point.imprecise) lines.push("wanted precision not reached");
    if (point.below) lines.push("zero or less: below the axis");
    if (point.note) lines.push(wrapped(point.note, 60));
    return lines.join("<br>");
  };

  const trace = (figure, curve) => {
    const card = colourOf("--card");
    const colour = seen(curve.colour);
    const at = (point) => (point.below ? figure.y.low : point.y);
    // A gap in the points is a gap in the line: a point below the axis stands between two gaps.
    const points = curve.points.flatMap((point) => (point.below ? [null, point, null] : [point.left_out ? null : point]));
    const each = (value) => points.map((point) => (point === null ? null : value(point)));
    const hollow = (point) => point.imprecise || point.below;
    const mode = [curve.line === "none" ? "" : "lines", "markers"].filter(Boolean).join("+");
    return {
      type: "scatter", mode, name: escaped(curve.label), connectgaps: false, showlegend: false, cliponaxis: false,
      x: each((point) => point.x), y: each(at),
      hoverinfo: "text", hovertext: each((point) => hover(figure, curve, point)),
      line: { color: colour, width: 1.8, dash: dashes[curve.line] ?? "solid" },
      marker: {
        size: curve.marker === "none" ? each((point) => (point.below ? 9 : 0)) : 8, opacity: 1,
        symbol: each((point) => (point.below ? "triangle-down" : symbols[curve.marker] ?? "circle")),
        color: points.map((point) => (point !== null && hollow(point) ? card : colour)),
        line: { color: colour, width: points.map((point) => (point !== null && hollow(point) ? 1.6 : 0)) },
      },
      error_y: {
        type: "data", symmetric: false, color: colour, thickness: 1.2, width: 4,
        array: each((point) => (point.high === null ? 0 : Math.max(0, point.high - at(point)))),
        arrayminus: each((point) => (point.low === null ? 0 : Math.max(0, at(point) - point.low))),
        visible: curve.points.some((point) => point.low !== null || point.high !== null),
      },
    };
  };

  const axis = (drawn) => ({
    title: { text: wrapped(drawn.label, 60), standoff: 8 },
    type: drawn.scale, range: drawn.scale === "log" ? [Math.log10(drawn.low), Math.log10(drawn.high)] : [drawn.low, drawn.high],
    gridcolor: colourOf("--grid"), linecolor: colourOf("--soft"), tickcolor: colourOf("--soft"), mirror: true, showline: true,
    zeroline: false, ticks: "outside", exponentformat: "power", showexponent: "all", automargin: true,
    minor: { ticks: "outside", ticklen: 3 },
    ...(drawn.scale === "log" && drawn.high / drawn.low > 30 ? { dtick: Math.ceil(Math.log10(drawn.high / drawn.low) / 9) } : {}),
  });

  const layout = (figure) => ({
    xaxis: axis(figure.x), yaxis: axis(figure.y), hovermode: "closest", dragmode: touch.matches ? false : "zoom",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 56, r: 14, t: 30, b: 48 },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colourOf("--soft"), activecolor: colourOf("--link") },
    font: { color: colourOf("--ink"), size: 13, family: getComputedStyle(document.body).fontFamily },
    hoverlabel: { align: "left", bgcolor: colourOf("--card"), bordercolor: colourOf("--soft"), font: { color: colourOf("--ink"), size: 13 } },
  });
  // Nothing of a report leaves the reader's machine: no logo that leads away, no button that uploads.
  const settings = {
    responsive: true, displaylogo: false, scrollZoom: false, showSendToCloud: false, plotlyServerURL: "", typesetMath: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };

  const element = (name, className, parent) => {
    const made = document.createElement(name);
    made.className = className;
    parent.append(made);
    return made;
  };

  // The mark of a curve as in the plot: its line and its sign.
  const mark = (curve) => {
    const shapes = {
      circle: "M18 8m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", square: "M14.5 4.5h7v7h-7z", triangle: "M18 3.4l4.4 7.6h-8.8z",
      diamond: "M18 3l4.6 5-4.6 5-4.6-5z", cross: "M15 3.4l3 3 3-3 1.6 1.6-3 3 3 3-1.6 1.6-3-3-3 3-1.6-1.6 3-3-3-3z", none: "",
      star: "M18.0 3.5L19.2 6.6L22.6 6.8L20.0 8.9L20.8 12.2L18.0 10.4L15.2 12.2L16.0 8.9L13.4 6.8L16.8 6.6z",
      plus: "M16.8 4h2.4v2.8h2.8v2.4h-2.8v2.8h-2.4v-2.8h-2.8v-2.4h2.8z", hexagon: "M18 3.4l4 2.3v4.6l-4 2.3-4-2.3v-4.6z",
    };
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const path = (d, look) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", "path");
      for (const [key, value] of Object.entries({ d, ...look })) made.setAttribute(key, value);
      svg.append(made);
    };
    for (const [key, value] of Object.entries({ width: 36, height: 16, "aria-hidden": "true" })) svg.setAttribute(key, value);
    const colour = seen(curve.colour);
    const dash = { dashed: "7 4", dotted: "2 3" }[curve.line] ?? "none";
    if (curve.line !== "none") path("M0 8H36", { stroke: colour, "stroke-width": 1.8, "stroke-dasharray": dash });
    path(shapes[curve.marker] ?? "", { fill: colour });
    return svg;
  };

  const draw = async (figure) => {
    const place = document.getElementById(figure.id);
    const drawing = element("div", "drawing", place);
    const plot = element("div", "plot", drawing);
    const legend = element("div", "legend", drawing);
    const buttons = figure.curves.map((curve, index) => {
      const button = element("button", "", legend);
      button.type = "button";
      button.ariaPressed = "true";
      button.title = "hides or shows this curve; twice: shows it alone, or all";
      button.append(mark(curve), document.createElement("span"));
      button.lastChild.textContent = curve.label;
      button.onclick = () => show((other) => (other === index ? !shown(other) : shown(other)));
      button.ondblclick = () => {
        const alone = buttons.every((_, other) => other === index || !shown(other));
        show((other) => alone || other === index);
      };
      return button;
    });
    const shown = (index) => buttons[index].ariaPressed === "true";
    const show = (wanted) => {
      const states = buttons.map((_, index) => wanted(index));
      states.forEach((state, index) => { buttons[index].ariaPressed = String(state); });
      return Plotly.restyle(plot, { visible: states });
    };
    place.classList.add("taken");
    try {
      await Plotly.newPlot(plot, figure.curves.map((curve) => trace(figure, curve)), layout(figure), settings);
    } catch (error) {
      place.classList.remove("taken");
      drawing.remove();
      throw error;
    }
    place.dataset.drawn = "true";
    dark.addEventListener("change", async () => {
      figure.curves.forEach((curve, index) => buttons[index].firstChild.replaceWith(mark(curve)));
      const visible = figure.curves.map((_, index) => shown(index));
      await Plotly.react(plot, figure.curves.map((curve, index) => ({ ...trace(figure, curve), visible: visible[index] })), layout(figure), settings);
    });
  };

  // What is looked at is drawn first, everything else after it, so that a long report opens at once.
  const waiting = new Map(figures.map((figure) => [figure.id, figure]));
  const take = (id) => {
    const figure = waiting.get(id);
    waiting.delete(id);
    // A figure that fails is an error of the page; its static picture stays, and the others are drawn.
    if (figure) draw(figure).catch(reportError);
  };
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((seenEntry) => seenEntry.isIntersecting)) take(entry.target.id);
  }, { rootMargin: "300px" });
  for (const place of document.querySelectorAll(".figure")) watch.observe(place);
  const next = () => {
    if (waiting.size === 0) return;
    take(waiting.keys().next().value);
    setTimeout(next, 0);
  };
  setTimeout(next, 0);

  for (const link of document.querySelectorAll("a.picture")) {
    const picture = link.closest("figure").querySelector(".static svg");
    link.hidden = false;
    link.href = "#";
    link.onclick = () => { link.href = URL.createObjectURL(new Blob([picture.outerHTML], { type: "image/svg+xml" })); };
  }

  addEventListener("beforeprint", () => {
    for (const parameters of document.querySelectorAll("details.parameters")) parameters.open = true;
  });

  const filters = document.querySelectorAll(".filter button");
  for (const button of filters) {
    button.onclick = () => {
      for (const other of filters) other.ariaPressed = String(other === button);
      for (const row of document.querySelectorAll("#all-claims tbody tr")) {
        row.hidden = button.dataset.verdict !== undefined && row.dataset.verdict !== button.dataset.verdict;
      }
    };
  }
})();
