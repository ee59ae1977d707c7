// The drawing of one graph, on a canvas. Only what is visible is drawn, with less detail the smaller it is, so that ten
// thousand ops move as easily as ten.

const MIN_SCALE = 0.001;
const MAX_SCALE = 4;
const FULL_TEXT = 0.5; // From this scale on, boxes have all their lines, and edges their shapes.
const SOME_TEXT = 0.19; // From this scale on, boxes have a title, enlarged to be readable.
const TINY = 2.4; // Pixels; groups whose boxes would be smaller are drawn as one box.
const MAP = { width: 148, height: 190 };

class GraphView {
  constructor(tree, options) {
    this.tree = tree;
    this.onSelect = options.onSelect;
    this.mode = options.mode;
    this.problems = options.problems || new Set();
    this.selected = null;
    this.marked = new Set();
    this.hits = new Set();
    this.hovered = null;
    this.scale = 1;
    this.x = this.y = 0;
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.map = el("canvas", { class: "map", "aria-hidden": "true" });
    this.element = el("div", {
      class: "graph", tabindex: "0", role: "application", "aria-label": options.title, "aria-describedby": "graph-keys",
    }, this.canvas, this.map);
    this.element.graph = this; // For tests, and for whoever looks into the page.
    this.listen();
  }

  get width() {
    return this.element.clientWidth || 800;
  }

  get height() {
    return this.element.clientHeight || 500;
  }

  // Positions every visible item and edge, those of open groups inside these.
  arrange() {
    this.items = [];
    this.where = new Map();
    const inside = place(this.tree.root);
    this.size = { width: inside.width, height: inside.height };
    this.top = { item: this.tree.root, x: 0, y: 0, ...this.size, isOpen: true };
    this.fill(this.top, 0, 0);
    this.overview = null;
  }

  fill(parent, dx, dy) {
    const group = parent.item;
    const inside = place(group);
    parent.inner = [];
    parent.lines = inside.edges.map((edge) => this.line(pointsOf(edge, dx, dy), edge));
    for (const box of inside.boxes) {
      const at = { item: box.item, x: box.x - box.width / 2 + dx, y: box.y + dy, width: box.width, height: box.height };
      at.isOpen = box.item.kind === "group" && box.item.expanded;
      this.items.push(at);
      parent.inner.push(at);
      this.where.set(box.item, at);
      if (group !== this.tree.root) this.stubs(parent, box, at, inside, dy);
      if (at.isOpen) this.fill(at, at.x + (at.width - place(box.item).width) / 2, at.y + HEADER + PADDING);
    }
  }

  // Edges between a group's children and the outside start and end at its border.
  stubs(parent, box, at, inside, dy) {
    const middle = at.x + at.width / 2;
    const edge = { from: box, to: box, tensors: 1, type: "", isStub: true };
    if (parent.item.entered.has(box.item) && box.band[0] < 1)
      parent.lines.push(this.line([[middle, dy - PADDING], [middle, at.y]], edge));
    if (parent.item.left.has(box.item) && box.band[1] > inside.height - 1)
      parent.lines.push(this.line([[middle, at.y + at.height], [middle, dy + inside.height + PADDING]], edge));
  }

  line(points, edge) {
    const [xs, ys] = [points.map((point) => point[0]), points.map((point) => point[1])];
    const [x, y] = [Math.min(...xs), Math.min(...ys)];
    return { points, edge, x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
  }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.drawNow();
    });
  }

  drawNow() {
    if (!this.items) return;
    const [width, height, ratio] = [this.width, this.height, window.devicePixelRatio || 1];
    const { canvas } = this;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
      [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.page;
    context.fillRect(0, 0, width, height);
    context.setTransform(ratio * this.scale, 0, 0, ratio * this.scale, ratio * this.x, ratio * this.y);
    const view = { x: -this.x / this.scale, y: -this.y / this.scale };
    [view.right, view.bottom] = [view.x + width / this.scale, view.y + height / this.scale];
    this.drawn = 0;
    this.drawInside(new CanvasPen(context), this.top, this.scale, view);
    canvas.dataset.drawn = this.drawn;
    canvas.dataset.scale = this.scale.toFixed(3);
    canvas.dataset.at = `${Math.round(this.x)} ${Math.round(this.y)}`;
    this.drawMap(view);
  }

  // Draws what is in an open group: edges, boxes, and the shapes at edges.
  drawInside(pen, parent, scale, view) {
    const seen = (at, more = 0) =>
      !view || (at.x - more <= view.right && at.x + at.width + more >= view.x && at.y - more <= view.bottom && at.y + at.height + more >= view.y);
    const lines = parent.lines.filter((line) => seen(line, 8) && (line.width + line.height) * scale > 1);
    this.drawLines(pen, lines, scale);
    for (const at of parent.inner) {
      if (!seen(at, 6)) continue;
      this.drawn++;
      if (at.isOpen && TITLE * scale >= TINY) {
        this.drawOpen(pen, at, scale);
        this.drawInside(pen, at, scale, view);
      } else this.drawBox(pen, at, scale);
    }
    if (scale >= FULL_TEXT) this.drawShapes(pen, lines);
  }

  drawLines(pen, lines, scale) {
    const lit = (line) => this.selected && (line.edge.from.item === this.selected || line.edge.to.item === this.selected);
    const styles = [
      [lines.filter((line) => !line.edge.turned && !line.edge.isStub && !lit(line)), theme.wire, []],
      [lines.filter((line) => line.edge.isStub && !lit(line)), theme.line, []],
      [lines.filter((line) => line.edge.turned && !lit(line)), theme.wire, [6, 4]],
      [lines.filter(lit), theme.accent, []],
    ];
    for (const [list, stroke, dash] of styles) {
      const isLit = stroke === theme.accent;
      if (list.length) pen.lines(list.map((line) => line.points), { stroke, line: (isLit ? 2.4 : 1.5) * Math.max(1, 0.5 / scale), dash });
      if (scale < 0.35) continue;
      for (const line of list) {
        if (line.edge.isStub || line.edge.turned) continue;
        const [x, y] = line.points[line.points.length - 1];
        pen.polygon([[x, y], [x - 4, y - 7], [x + 4, y - 7]], stroke);
      }
    }
  }

  // Writes the shapes of tensors below the boxes that compute them, each once.
  drawShapes(pen, lines) {
    const known = new Map();
    for (const { edge, points } of lines) {
      if (!edge.type || edge.isStub || edge.turned || edge.from.item.isPort) continue;
      const words = edge.tensors > 1 && !edge.type ? many(edge.tensors, "tensor") : shapeText(edge.type);
      const where = known.get(edge.from);
      if (where && where.has(words)) continue;
      known.set(edge.from, (where || new Set()).add(words));
      const [[x, y], [, bottom]] = points;
      const isLeft = edge.leave < 0 || (!edge.leave && lines.some((line) => line.edge.from === edge.from && line.edge.leave > 0));
      pen.text(words, x + (isLeft ? -6 : 6), Math.min(y + 17, (y + bottom) / 2 + 8), { size: 10.5, fill: theme.dim, halo: theme.page, anchor: isLeft ? "end" : "start" });
    }
  }

  drawOpen(pen, at, scale) {
    const { item } = at;
    const isSelected = item === this.selected;
    pen.box(at.x, at.y, at.width, at.height, { radius: 10, fill: theme.soft, stroke: isSelected ? theme.accent : theme.line, line: (isSelected ? 2.5 : 1.2) * Math.max(1, 0.4 / scale) });
    if (scale < SOME_TEXT) return;
    const size = Math.min(Math.max(12.5, 9 / scale), 22);
    pen.text(fitted(plain(item.label), size, 600, at.width - 50, false), at.x + 34, at.y + 15 + size / 3, { size, weight: 600, fill: theme.ink });
    this.drawSign(pen, at.x + 18, at.y + 16, false);
  }

  drawSign(pen, x, y, isClosed) {
    pen.circle(x, y, 9, { fill: theme.card, stroke: theme.wire });
    pen.lines([[[x - 4, y], [x + 4, y]], ...(isClosed ? [[[x, y - 4], [x, y + 4]]] : [])], { stroke: theme.ink, line: 1.8 });
  }

  // Returns the colours of a box: of its title, and of the words on it.
  colorsOf(item) {
    const color = this.mode.colorOf(item) || (item.kind === "group" ? theme.wire : item.isPort ? theme.accent : theme.line);
    return { color, ink: isLight(color) ? "#10151d" : "#ffffff" };
  }

  outlineOf(item) {
    if (item === this.selected) return [theme.accent, 3];
    if (this.isFailing(item)) return [theme.bad, 3];
    if (this.marked.has(item)) return [theme.warm, 2.5];
    if (this.hits.has(item)) return [theme.warm, 2];
    if (item === this.hovered) return [theme.accent, 1.6];
    return [theme.wire, 1];
  }

  isFailing(item) {
    return item.kind === "op" ? (item.node.problems || []).length > 0 : this.problems.has(item);
  }

  drawBox(pen, at, scale) {
    const { item } = at;
    const { color, ink } = this.colorsOf(item);
    const fill = this.isFailing(item) ? theme.bad : color;
    const [stroke, line] = this.outlineOf(item);
    const isMarked = line > 1;
    const border = isMarked ? { stroke, line: line * Math.max(1, 0.7 / scale) } : {};
    const radius = item.isPort ? at.height / 2 : 8;
    if (scale < SOME_TEXT) {
      pen.box(at.x, at.y, at.width, at.height, { radius: scale > 0.08 ? radius : 0, fill, ...border });
      return;
    }
    if (item.times > 1) for (const shift of [8, 4]) pen.box(at.x + shift, at.y + shift, at.width, at.height, { radius, fill: theme.card, stroke: theme.wire });
    if (scale < FULL_TEXT) {
      const size = Math.min(10 / scale, 34);
      const words = fitted(plain(item.label || item.node.name), size, 600, at.width - 14, false);
      pen.box(at.x, at.y, at.width, at.height, { radius, fill, ...border });
      pen.text(words, at.x + at.width / 2, at.y + at.height / 2 + size * 0.36, { size, weight: 600, fill: this.isFailing(item) ? theme.card : ink, anchor: "middle" });
      return;
    }
    pen.box(at.x, at.y, at.width, at.height, { radius, fill: theme.card, stroke, line });
    if (item.isPort) this.writePort(pen, at);
    else if (item.kind === "group") this.writeGroup(pen, at, fill);
    else this.writeOp(pen, at, fill, this.isFailing(item) ? theme.card : ink);
  }

  writePort(pen, at) {
    const { node } = at.item;
    const middle = at.x + at.width / 2;
    const type = node.types ? node.types[0] : (node.attributes || {}).type;
    pen.box(at.x + 3, at.y + 3, at.width - 6, at.height - 6, { radius: at.height / 2 - 3, fill: theme["accent-soft"] });
    pen.text(fitted(plain(node.name), 12.5, 600, at.width - 36, true), middle, at.y + 18, { size: 12.5, weight: 600, fill: theme.ink, anchor: "middle" });
    pen.text(fitted(plain(type || ""), 10.5, 400, at.width - 30, false), middle, at.y + 32, { size: 10.5, fill: theme.dim, anchor: "middle" });
  }

  writeGroup(pen, at, fill) {
    const { item } = at;
    pen.box(at.x, at.y, 6, at.height, { radius: [8, 0, 0, 8], fill });
    const badge = item.times > 1 ? `×${count(item.times)}` : "";
    const room = badge ? widthOf(badge, 13, 700) + 14 : 0;
    pen.text(fitted(plain(item.label), 12.5, 600, at.width - 48 - room, false), at.x + 38, at.y + 22, { size: 12.5, weight: 600, fill: theme.ink });
    if (badge) pen.text(badge, at.x + at.width - 12, at.y + 22, { size: 13, weight: 700, fill: theme.accent, anchor: "end" });
    const under = [many(item.ops, "op"), this.mode.noteOf(item) || (item.bytes && bytes(item.bytes))].filter(Boolean).join(", ");
    pen.text(fitted(under, 11, 400, at.width - 50, false), at.x + 38, at.y + 39, { size: 11, fill: theme.dim });
    this.drawSign(pen, at.x + 22, at.y + at.height / 2, true);
  }

  writeOp(pen, at, fill, ink) {
    const { node } = at.item;
    pen.box(at.x, at.y, at.width, TITLE, { radius: [8, 8, 0, 0], fill });
    const fused = fusedInto(node);
    const value = this.mode.noteOf(at.item);
    const right = value || (fused && `+ ${fused}`);
    const room = right ? widthOf(right, 11, 500) + 10 : 0;
    pen.text(fitted(plain(node.op), 12.5, 650, at.width - 20 - room, false), at.x + 10, at.y + 17.5, { size: 12.5, weight: 650, fill: ink });
    if (right) pen.text(fitted(right, 11, 500, at.width - 40, false), at.x + at.width - 10, at.y + 17.5, { size: 11, weight: 500, fill: ink, anchor: "end" });
    linesOf(node).forEach((each, index) => {
      const y = at.y + TITLE + 13 + index * LINE;
      if (each.isName) {
        const more = value && fused ? `+ ${fused}` : "";
        if (more) pen.text(more, at.x + at.width - 10, y, { size: 11, weight: 500, fill: theme.ink, anchor: "end" });
        return pen.text(fitted(plain(each.words), 11, 400, at.width - 20 - (more && widthOf(more, 11, 500) + 8), true), at.x + 10, y, { size: 11, fill: theme.dim });
      }
      const start = widthOf(each.role, 10.5, 600) + 6;
      pen.text(each.role, at.x + 10, y, { size: 10.5, weight: 600, fill: theme.ink });
      return pen.text(fitted(plain(each.words), 10.5, 400, at.width - 20 - start, false), at.x + 10 + start, y, { size: 10.5, fill: theme.ink });
    });
  }

  // The map of the whole graph, stretched if it is narrow, with the visible part.
  drawMap(view) {
    const { map } = this;
    const isNeeded = this.size.width * this.scale > this.width * 1.1 || this.size.height * this.scale > this.height * 1.1;
    map.hidden = !isNeeded || this.width < 560;
    if (map.hidden) return;
    const ratio = window.devicePixelRatio || 1;
    let [sx, sy] = [MAP.width / this.size.width, MAP.height / this.size.height];
    [sx, sy] = [Math.min(sx, sy * 12), Math.min(sy, sx * 12)];
    const [width, height] = [Math.max(this.size.width * sx, 24), Math.max(this.size.height * sy, 24)];
    if (!this.overview || this.overview.mode !== this.mode) {
      const picture = document.createElement("canvas");
      [picture.width, picture.height] = [Math.ceil(width * ratio), Math.ceil(height * ratio)];
      const context = picture.getContext("2d");
      context.scale(sx * ratio, sy * ratio);
      for (const at of this.items) {
        context.fillStyle = at.isOpen ? theme.soft : this.isFailing(at.item) ? theme.bad : this.colorsOf(at.item).color;
        context.fillRect(at.x, at.y, Math.max(at.width, 1 / sx), Math.max(at.height, 1 / sy));
      }
      this.overview = { picture, mode: this.mode };
    }
    [map.width, map.height] = [this.overview.picture.width, this.overview.picture.height];
    [map.style.width, map.style.height] = [`${width}px`, `${height}px`];
    this.mapScale = [sx, sy];
    const context = map.getContext("2d");
    context.drawImage(this.overview.picture, 0, 0);
    context.scale(ratio, ratio);
    const [x, y] = [Math.max(view.x * sx, 1), Math.max(view.y * sy, 1)];
    context.strokeStyle = theme.accent;
    context.lineWidth = 2;
    context.strokeRect(x, y, Math.max(Math.min(view.right * sx, width - 1) - x, 3), Math.max(Math.min(view.bottom * sy, height - 1) - y, 3));
  }

  recolor(mode) {
    this.mode = mode;
    mode.prepare(this.tree.leaves);
    this.overview = null;
    this.draw();
  }

  // The item at a point of the screen, the innermost one.
  at(x, y) {
    const [wx, wy] = [(x - this.x) / this.scale, (y - this.y) / this.scale];
    let found = null;
    for (let inner = this.top.inner; inner; ) {
      const next = inner.find((at) => wx >= at.x && wx <= at.x + at.width && wy >= at.y && wy <= at.y + at.height);
      if (!next) break;
      found = next;
      inner = next.isOpen && TITLE * this.scale >= TINY ? next.inner : null;
    }
    return found;
  }

  isSign(at, x, y) {
    if (at.item.kind !== "group" || this.scale < SOME_TEXT) return false;
    const [sx, sy] = at.isOpen ? [18, 16] : [22, at.height / 2];
    return Math.hypot((x - this.x) / this.scale - at.x - sx, (y - this.y) / this.scale - at.y - sy) < 14;
  }

  // Shows an item and opens the groups that contain it.
  reveal(item, zoom) {
    let changed = false;
    for (let group = item.parent; group; group = group.parent) {
      changed = changed || !group.expanded;
      group.expanded = true;
    }
    if (changed) for (let group = item.parent; group; group = group.parent) group.placed = null;
    if (changed || !this.items) this.arrange();
    const at = this.where.get(item);
    if (zoom) this.scale = Math.max(this.scale, 0.8);
    this.center(at);
    this.select(item);
  }

  center(at) {
    this.x = this.width / 2 - (at.x + at.width / 2) * this.scale;
    this.y = this.height / 2 - (at.y + Math.min(at.height, 200) / 2) * this.scale;
    this.draw();
  }

  select(item) {
    this.selected = item;
    this.draw();
    this.onSelect(item);
  }

  toggle(group) {
    const before = this.where.get(group);
    group.expanded = !group.expanded;
    for (let at = group; at; at = at.parent) at.placed = null;
    this.arrange();
    const after = this.where.get(group);
    this.x += (before.x + before.width / 2 - after.x - after.width / 2) * this.scale;
    this.y += (before.y - after.y) * this.scale;
    this.select(group);
    say(`${group.label} ${group.expanded ? "opened" : "closed"}`);
  }

  // Opens or closes all groups. At most `limit` items are shown, so the largest graphs open only the upper levels.
  toggleAll(open, limit) {
    let level = [this.tree.root];
    let shown = 1;
    while (level.length) {
      const next = [];
      for (const group of level) {
        group.expanded = group === this.tree.root || (open && shown + group.children.length <= limit);
        if (group.expanded) shown += group.children.length;
        group.placed = null;
        next.push(...group.children.filter((child) => child.kind === "group"));
      }
      level = next;
    }
    this.arrange();
    this.home();
  }

  // Shows the start of the graph at its natural size.
  home() {
    this.scale = 1;
    this.y = this.size.height < this.height - 150 ? (this.height - this.size.height) / 2 : 96;
    const first = this.items.filter((at) => !at.isOpen && !at.item.isPort).reduce((one, other) => (other.y < one.y ? other : one), this.items[0]);
    const middle = this.size.width <= this.width || !first ? this.size.width / 2 : first.x + first.width / 2;
    this.x = this.width / 2 - middle;
    this.draw();
  }

  // Shows all of the graph.
  fit() {
    const [across, down] = [(this.width - 32) / (this.size.width || 1), (this.height - 32) / (this.size.height || 1)];
    this.scale = Math.min(Math.max(Math.min(across, down), MIN_SCALE), 1);
    this.x = (this.width - this.size.width * this.scale) / 2;
    this.y = Math.max(16, (this.height - this.size.height * this.scale) / 2);
    this.draw();
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const scale = Math.min(Math.max(this.scale * factor, MIN_SCALE), MAX_SCALE);
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.draw();
  }

  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.draw();
  }

  // The drawing as a file of SVG, with all that is open.
  toSvg() {
    const pen = new SvgPen();
    this.drawInside(pen, this.top, 1, null);
    return pen.toText(-24, -24, this.size.width + 48, this.size.height + 48, theme.page);
  }

  // The drawing as a canvas, as large as browsers allow.
  toCanvas() {
    const [width, height] = [this.size.width + 48, this.size.height + 48];
    const scale = Math.min(2, 16000 / width, 16000 / height, Math.sqrt(6e7 / (width * height)));
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [Math.ceil(width * scale), Math.ceil(height * scale)];
    const context = canvas.getContext("2d");
    context.fillStyle = theme.page;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.setTransform(scale, 0, 0, scale, 24 * scale, 24 * scale);
    this.drawInside(new CanvasPen(context), this.top, scale, null);
    return canvas;
  }

  listen() {
    const pointers = new Map();
    let moved = 0;
    const place = (event, element = this.canvas) => {
      const box = element.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      pointers.set(event.pointerId, place(event));
      moved = 0;
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!pointers.has(event.pointerId)) return this.hover(event.pointerType === "mouse" ? this.at(...place(event)) : null);
      const [old, now] = [pointers.get(event.pointerId), place(event)];
      moved += Math.abs(now[0] - old[0]) + Math.abs(now[1] - old[1]);
      if (moved > 4 && !this.canvas.hasPointerCapture(event.pointerId)) this.canvas.setPointerCapture(event.pointerId);
      const other = [...pointers].find(([id]) => id !== event.pointerId);
      pointers.set(event.pointerId, now);
      if (!other) return this.pan(now[0] - old[0], now[1] - old[1]);
      const [[x, y], far] = [other[1], (at) => Math.hypot(at[0] - other[1][0], at[1] - other[1][1])];
      if (far(old) > 1) this.zoom(far(now) / far(old), (x + now[0]) / 2, (y + now[1]) / 2);
    });
    for (const name of ["pointerup", "pointercancel"]) this.canvas.addEventListener(name, (event) => pointers.delete(event.pointerId));
    this.canvas.addEventListener("pointerleave", () => this.hover(null));
    this.canvas.addEventListener("click", (event) => {
      if (moved > 4) return;
      const [x, y] = place(event);
      const at = this.at(x, y);
      if (at && this.isSign(at, x, y)) this.toggle(at.item);
      else if (at || this.selected) this.select(at ? at.item : null);
    });
    this.canvas.addEventListener("dblclick", (event) => {
      const at = this.at(...place(event));
      if (at && at.item.kind === "group" && !this.isSign(at, ...place(event))) this.toggle(at.item);
    });
    this.element.addEventListener("wheel", (event) => {
      const zooms = event.ctrlKey || event.metaKey;
      // Inside another page, that page scrolls until the graph has the focus.
      if (!zooms && window.self !== window.top && document.activeElement !== this.element) return;
      event.preventDefault();
      if (zooms) this.zoom(Math.exp(-event.deltaY * 0.004), ...place(event));
      else this.pan(-event.deltaX, -event.deltaY);
    }, { passive: false });
    const jump = (event) => {
      const [x, y] = place(event, this.map);
      this.x = this.width / 2 - (x / this.mapScale[0]) * this.scale;
      this.y = this.height / 2 - (y / this.mapScale[1]) * this.scale;
      this.draw();
    };
    this.map.addEventListener("pointerdown", (event) => {
      this.map.setPointerCapture(event.pointerId);
      jump(event);
    });
    this.map.addEventListener("pointermove", (event) => event.buttons && jump(event));
    this.element.addEventListener("keydown", (event) => this.key(event));
    let [width, height] = [0, 0];
    new ResizeObserver(() => {
      if (width) this.x += (this.width - width) / 2; // What was in the middle stays there.
      if (height && this.selected) this.y += (this.height - height) / 2;
      [width, height] = [this.width, this.height];
      this.drawNow();
    }).observe(this.element);
  }

  hover(at) {
    const item = at && !at.isOpen ? at.item : null;
    this.canvas.style.cursor = item ? "pointer" : "";
    this.canvas.title = item ? plain(item.kind === "op" ? `${item.node.op} ${item.node.name}` : item.path) : "";
    if (item === this.hovered) return;
    this.hovered = item;
    this.draw();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
    if (step && event.shiftKey) this.pan(-step[0] * 80, -step[1] * 80);
    else if (step) this.step(...step);
    else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit();
    else if (event.key === "1") this.home();
    else if (event.key === "Escape") this.select(null);
    else if ((event.key === "Enter" || event.key === " ") && this.selected && this.selected.kind === "group") this.toggle(this.selected);
    else if (event.key === "Enter") this.onSelect(this.selected, true);
    else return;
    event.preventDefault();
  }

  // Moves to the nearest item in a direction.
  step(dx, dy) {
    const from = this.where.get(this.selected);
    if (!from) return this.items.length && this.reveal(this.items[0].item);
    const [x, y] = [from.x + from.width / 2, from.y + (from.isOpen ? HEADER : from.height) / 2];
    let best = null;
    let least = Infinity;
    for (const at of this.items) {
      if (at === from) continue;
      const [ax, ay] = [at.x + at.width / 2 - x, at.y + (at.isOpen ? HEADER : at.height) / 2 - y];
      const [along, aside] = dx ? [ax * dx, Math.abs(ay)] : [ay * dy, Math.abs(ax)];
      if (along < 2 || (dx && aside > at.height + from.height)) continue;
      const far = along + aside * (dx ? 4 : 0.6);
      if (far < least) [best, least] = [at, far];
    }
    if (best) this.reveal(best.item);
  }
}
