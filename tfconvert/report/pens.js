// Two pens with the same strokes: one draws on a canvas, the other writes SVG. Coordinates are those of the graph.

const FONT = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
const ruler = document.createElement("canvas").getContext("2d");
const widths = new Map();

function widthOf(words, size, weight) {
  const key = `${weight} ${words}`;
  if (!widths.has(key)) {
    if (widths.size > 50000) widths.clear();
    ruler.font = `${weight} 100px ${FONT}`;
    widths.set(key, ruler.measureText(words).width / 100);
  }
  return widths.get(key) * size;
}

// Words that fit into a width; `fromEnd` keeps the end instead of the start.
function fitted(words, size, weight, width, fromEnd) {
  if (widthOf(words, size, weight) <= width) return words;
  let [low, high] = [0, words.length];
  const part = (length) => (fromEnd ? tail(words, length + 1) : cut(words, length + 1));
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (widthOf(part(middle), size, weight) <= width) low = middle;
    else high = middle - 1;
  }
  return low ? part(low) : "";
}

class CanvasPen {
  constructor(context) {
    this.context = context;
  }

  box(x, y, width, height, { radius = 0, fill, stroke, line = 1 }) {
    const { context } = this;
    context.beginPath();
    if (radius) context.roundRect(x, y, width, height, radius);
    else context.rect(x, y, width, height);
    this.paint(fill, stroke, line);
  }

  circle(x, y, radius, { fill, stroke, line = 1 }) {
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 7);
    this.paint(fill, stroke, line);
  }

  polygon(points, fill) {
    this.context.beginPath();
    points.forEach(([x, y], index) => (index ? this.context.lineTo(x, y) : this.context.moveTo(x, y)));
    this.paint(fill);
  }

  paint(fill, stroke, line) {
    const { context } = this;
    if (fill) {
      context.fillStyle = fill;
      context.fill();
    }
    if (stroke) {
      [context.strokeStyle, context.lineWidth] = [stroke, line];
      context.stroke();
    }
  }

  // Lines of one style, each a list of points.
  lines(list, { stroke, line, dash = [] }) {
    const { context } = this;
    context.beginPath();
    for (const points of list) trace(context, points);
    context.setLineDash(dash);
    this.paint(null, stroke, line);
    context.setLineDash([]);
  }

  text(words, x, y, { size, weight = 400, fill, anchor = "start", halo }) {
    const { context } = this;
    context.font = `${weight} ${size}px ${FONT}`;
    context.textAlign = { start: "left", middle: "center", end: "right" }[anchor];
    if (halo) {
      [context.strokeStyle, context.lineWidth, context.lineJoin] = [halo, size / 3, "round"];
      context.strokeText(words, x, y);
    }
    context.fillStyle = fill;
    context.fillText(words, x, y);
  }
}

const short1 = (number) => String(Math.round(number * 10) / 10);
const escaped = (words) => plain(words).replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`);

class SvgPen {
  constructor() {
    this.parts = [];
  }

  element(name, attributes, inside = "") {
    const pairs = Object.entries(attributes).filter(([, value]) => value !== undefined && value !== null && value !== "");
    const text = pairs.map(([key, value]) => ` ${key}="${typeof value === "number" ? short1(value) : escaped(value)}"`).join("");
    this.parts.push(inside ? `<${name}${text}>${inside}</${name}>` : `<${name}${text}/>`);
  }

  box(x, y, width, height, { radius, fill, stroke, line }) {
    this.element("rect", { x, y, width, height, rx: Array.isArray(radius) ? radius[0] : radius, fill: fill || "none", stroke, "stroke-width": stroke && line });
  }

  circle(cx, cy, r, { fill, stroke, line }) {
    this.element("circle", { cx, cy, r, fill: fill || "none", stroke, "stroke-width": stroke && line });
  }

  polygon(points, fill) {
    this.element("polygon", { points: points.map((point) => point.map(short1).join()).join(" "), fill });
  }

  lines(list, { stroke, line, dash }) {
    const path = {
      text: "",
      add(letter, numbers) { this.text += letter + numbers.map(short1).join(" "); },
      moveTo(...to) { this.add("M", to); },
      lineTo(...to) { this.add("L", to); },
      bezierCurveTo(...to) { this.add("C", to); },
    };
    for (const points of list) trace(path, points);
    if (list.length) this.element("path", { d: path.text, fill: "none", stroke, "stroke-width": line, "stroke-dasharray": dash && dash.join(" ") });
  }

  text(words, x, y, { size, weight, fill, anchor, halo }) {
    this.element("text", {
      x, y, "font-size": size, "font-weight": weight, fill, "text-anchor": anchor === "start" ? "" : anchor,
      stroke: halo, "stroke-width": halo && size / 3, "paint-order": halo && "stroke", "stroke-linejoin": halo && "round",
    }, escaped(words));
  }

  // The file, with everything that was drawn.
  toText(x, y, width, height, background) {
    const view = [x, y, width, height].map(short1).join(" ");
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${view}" width="${short1(width)}" height="${short1(height)}" font-family="${escaped(FONT)}">` +
      `<rect x="${short1(x)}" y="${short1(y)}" width="100%" height="100%" fill="${background}"/>${this.parts.join("")}</svg>\n`;
  }
}
