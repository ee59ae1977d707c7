// The drawing of one graph. The document contains only what is visible, so ten thousand ops move as easily as ten.

const KINDS = [
  ["math", /conv|matmul|fullyconnected|einsum|lstm|rnn|gru|svdf|embedding|attention/],
  ["pool", /pool|mean|sum|reduce|argm|topk|softmax|norm|l2/],
  ["act", /relu|sigmoid|tanh|gelu|elu|swish|logistic|prelu|exp|erf|silu/],
  ["quant", /quant/],
  ["flow", /^if$|while|call|case|^cond|loop|switch|merge/],
  ["move", /reshape|transpose|concat|slice|pad|pack|gather|split|squeeze|expanddims|shape|tile|broadcast|identity|cast|space|depth|resize|fill|range|scatter|select|where|reverse/],
  ["arith", /add|sub|mul|div|sqrt|square|pow|max|min|neg|abs|less|greater|equal|logical|floor|round|log/],
];

function kindOf(op) {
  if (op === "Input" || op === "Output") return "edge";
  const name = op.toLowerCase().replaceAll("_", "");
  const found = KINDS.find(([, pattern]) => pattern.test(name));
  return found ? found[0] : "other";
}

const MIN_SCALE = 0.02;
const MAX_SCALE = 2.5;

class GraphView {
  constructor(tree, onSelect, title) {
    this.tree = tree;
    this.onSelect = onSelect;
    this.selected = null;
    this.marked = new Set();
    this.scale = 1;
    this.x = this.y = 0;
    this.drawn = new Map();
    this.layers = { boxes: svg("g"), lines: svg("g"), fronts: svg("g") };
    this.world = svg("g", {}, this.layers.boxes, this.layers.lines, this.layers.fronts);
    this.svg = svg("svg", { "aria-hidden": "true", focusable: "false" }, this.world);
    this.element = el("div", {
      class: "graph", tabindex: "0", role: "application", "aria-label": title, "aria-describedby": "graph-keys",
    }, this.svg);
    this.listen();
  }

  // Collects every visible item and edge in flat lists, with their positions.
  arrange() {
    this.items = [];
    this.lines = [];
    this.where = new Map();
    this.walk(this.tree.root, 0, 0);
    const inside = place(this.tree.root);
    this.size = { width: inside.width, height: inside.height };
    this.clear();
  }

  walk(group, dx, dy) {
    const inside = place(group);
    for (const edge of inside.edges) {
      const points = pointsOf(edge, dx, dy);
      this.lines.push(this.line(points, edge.turned ? "line back" : "line", edge.tensors, [edge.from.item, edge.to.item]));
    }
    for (const box of inside.boxes) {
      const at = { item: box.item, x: box.x - box.width / 2 + dx, y: box.y + dy, width: box.width, height: box.height };
      at.open = box.item.kind === "group" && box.item.expanded;
      this.items.push(at);
      this.where.set(box.item, at);
      if (group !== this.tree.root) this.stubs(group, box, at, inside, dx, dy);
      if (at.open) this.walk(box.item, at.x + PADDING, at.y + HEADER + PADDING);
    }
  }

  // Edges between a group's children and the outside start and end at its border.
  stubs(group, box, at, inside, dx, dy) {
    const middle = at.x + at.width / 2;
    if (group.entered.has(box.item) && box.band[0] < 1)
      this.lines.push(this.line([[middle, dy - PADDING], [middle, at.y]], "line stub", 1, [box.item]));
    if (group.left.has(box.item) && box.band[1] > inside.height - 1)
      this.lines.push(this.line([[middle, at.y + at.height], [middle, dy + inside.height + PADDING]], "line stub", 1, [box.item]));
  }

  line(points, style, tensors, ends) {
    const [xs, ys] = [points.map((point) => point[0]), points.map((point) => point[1])];
    const [x, y] = [Math.min(...xs), Math.min(...ys)];
    return { points, style, tensors, ends, x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
  }

  clear() {
    this.drawn.clear();
    for (const layer of Object.values(this.layers)) layer.replaceChildren();
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
    const [width, height] = [this.svg.clientWidth || 800, this.svg.clientHeight || 500];
    this.world.setAttribute("transform", `translate(${this.x} ${this.y}) scale(${this.scale})`);
    const small = this.scale < 0.3;
    if (small !== this.small) this.clear();
    this.small = small;
    const view = { x: -this.x / this.scale - 60, y: -this.y / this.scale - 60 };
    view.right = view.x + width / this.scale + 120;
    view.bottom = view.y + height / this.scale + 120;
    const seen = (at) =>
      at.x <= view.right && at.x + at.width >= view.x && at.y <= view.bottom && at.y + at.height >= view.y &&
      (at.points ? at.width + at.height : at.height) * this.scale > 1.5;
    const now = new Set();
    for (const at of this.items) if (seen(at)) now.add(at);
    for (const at of this.lines) if (seen(at)) now.add(at);
    for (const [at, element] of this.drawn) {
      if (!now.has(at)) {
        element.remove();
        this.drawn.delete(at);
      }
    }
    for (const at of now) {
      if (this.drawn.has(at)) continue;
      const element = at.points ? this.drawLine(at) : this.drawItem(at);
      (at.points ? this.layers.lines : at.open ? this.layers.boxes : this.layers.fronts).append(element);
      this.drawn.set(at, element);
    }
    // An open group is drawn below the groups inside, in whatever order they became visible.
    if (this.layers.boxes.childElementCount > 1) {
      const open = this.items.filter((at) => at.open && this.drawn.has(at));
      open.forEach((at) => this.layers.boxes.append(this.drawn.get(at)));
    }
    this.mark();
  }

  drawLine(at) {
    const path = svg("path", { class: at.style, d: lineOf(at.points) });
    path.style.strokeWidth = Math.min(1.4 + Math.log2(at.tensors) * 0.8, 5);
    return path;
  }

  drawItem(at) {
    const { item } = at;
    const kind = item.kind === "group" ? "group" : kindOf(item.node.op);
    const g = svg("g", { class: `item ${kind}${at.open ? " open" : ""}`, transform: `translate(${at.x} ${at.y})` });
    g.append(svg("rect", { width: at.width, height: at.height, rx: kind === "edge" ? at.height / 2 : 9 }));
    if (kind !== "group" && kind !== "edge") g.append(svg("rect", { class: "stripe", width: 5, height: at.height - 16, x: 7, y: 8, rx: 2.5 }));
    if (!this.small) this.write(g, at, kind);
    g.at = at;
    return g;
  }

  write(g, at, kind) {
    const { item } = at;
    const text = (words, style, x, y, limit) => g.append(svg("text", { class: style, x, y }, cut(plain(words), limit)));
    if (kind === "group") {
      text(item.label, "title", 34, at.open ? 20 : 21, at.open ? Math.max(18, Math.floor(at.width / 8) - 8) : 22);
      const weights = item.bytes ? `, ${bytes(item.bytes)}` : "";
      if (!at.open) text(`${many(item.ops, "op")}${weights}`, "under", 34, 38, 30);
      const sign = svg("g", { class: "sign", transform: `translate(18 ${at.open ? 16 : at.height / 2})` });
      sign.append(svg("circle", { r: 9 }), svg("path", { d: at.open ? "M-4 0H4" : "M-4 0H4M0 -4V4" }));
      g.append(sign);
    } else if (kind === "edge") {
      text(item.node.name, "title", at.width / 2, 17, 22);
      text(item.node.types ? item.node.types[0] : item.node.attributes.type, "under", at.width / 2, 31, 27);
    } else {
      text(item.node.op, "title", 20, 20, 22);
      const name = (item.node.scope || item.node.name).split("/").slice(-2).join("/");
      g.append(svg("text", { class: "under", x: 20, y: 36 }, tail(plain(name), 28)));
    }
  }

  mark() {
    for (const [at, element] of this.drawn) {
      const lit = at.points ? at.ends.includes(this.selected) : false;
      element.classList.toggle("lit", lit);
      if (at.item) {
        element.classList.toggle("selected", at.item === this.selected);
        element.classList.toggle("kin", this.marked.has(at.item));
      }
    }
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
    this.x = this.svg.clientWidth / 2 - (at.x + at.width / 2) * this.scale;
    this.y = this.svg.clientHeight / 2 - (at.y + Math.min(at.height, 200) / 2) * this.scale;
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
    this.fit();
  }

  // Shows the start of the graph at a readable size, or all of it, unless that would be no wider than a line.
  fit(whole) {
    const [width, height] = [this.svg.clientWidth || 800, this.svg.clientHeight || 500];
    const [across, down] = [(width - 32) / (this.size.width || 1), (height - 32) / (this.size.height || 1)];
    const scale = Math.max(Math.min(across, down), Math.min(across, whole ? 0.1 : 0.62));
    this.scale = Math.min(Math.max(scale, whole ? MIN_SCALE : 0.4), 1);
    this.x = (width - this.size.width * this.scale) / 2;
    this.y = Math.max(16, (height - this.size.height * this.scale) / 2);
    if (!whole && this.size.width * this.scale > width && this.items.length) {
      const first = this.items[0];
      this.x = width / 2 - (first.x + first.width / 2) * this.scale;
    }
    this.draw();
  }

  zoom(factor, x, y) {
    const scale = Math.min(Math.max(this.scale * factor, MIN_SCALE), MAX_SCALE);
    x = x === undefined ? this.svg.clientWidth / 2 : x;
    y = y === undefined ? this.svg.clientHeight / 2 : y;
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

  listen() {
    const pointers = new Map();
    let moved = 0;
    const place = (event) => {
      const box = this.svg.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      pointers.set(event.pointerId, place(event));
      moved = 0;
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (!pointers.has(event.pointerId)) return;
      const [old, now] = [pointers.get(event.pointerId), place(event)];
      moved += Math.abs(now[0] - old[0]) + Math.abs(now[1] - old[1]);
      if (moved > 4 && !this.svg.hasPointerCapture(event.pointerId)) this.svg.setPointerCapture(event.pointerId);
      const other = [...pointers].find(([id]) => id !== event.pointerId);
      pointers.set(event.pointerId, now);
      if (!other) return this.pan(now[0] - old[0], now[1] - old[1]);
      const [[x, y], far] = [other[1], (at) => Math.hypot(at[0] - other[1][0], at[1] - other[1][1])];
      if (far(old) > 1) this.zoom(far(now) / far(old), (x + now[0]) / 2, (y + now[1]) / 2);
    });
    for (const name of ["pointerup", "pointercancel"]) this.svg.addEventListener(name, (event) => pointers.delete(event.pointerId));
    this.svg.addEventListener("click", (event) => {
      const item = event.target.closest(".item");
      if (moved > 4 || !item) return;
      if (event.target.closest(".sign")) this.toggle(item.at.item);
      else this.select(item.at.item);
    });
    this.svg.addEventListener("dblclick", (event) => {
      const item = event.target.closest(".item");
      if (item && item.at.item.kind === "group") this.toggle(item.at.item);
    });
    this.element.addEventListener("wheel", (event) => {
      const zooms = event.ctrlKey || event.metaKey;
      if (!zooms && document.activeElement !== this.element) return; // Scroll the page if the graph doesn't have the focus.
      event.preventDefault();
      if (zooms) this.zoom(Math.exp(-event.deltaY * 0.004), ...place(event));
      else this.pan(-event.deltaX, -event.deltaY);
    }, { passive: false });
    this.element.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.items && this.draw()).observe(this.element);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
    if (step && event.shiftKey) this.pan(-step[0] * 80, -step[1] * 80);
    else if (step) this.step(...step);
    else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit(true);
    else if ((event.key === "Enter" || event.key === " ") && this.selected && this.selected.kind === "group") this.toggle(this.selected);
    else if (event.key === "Enter") this.onSelect(this.selected, true);
    else return;
    event.preventDefault();
  }

  // Moves to the nearest item in a direction.
  step(dx, dy) {
    const from = this.where.get(this.selected);
    if (!from) return this.items.length && this.reveal(this.items[0].item);
    const [x, y] = [from.x + from.width / 2, from.y + (from.open ? HEADER : from.height) / 2];
    let best = null;
    let least = Infinity;
    for (const at of this.items) {
      if (at === from) continue;
      const [ax, ay] = [at.x + at.width / 2 - x, at.y + (at.open ? HEADER : at.height) / 2 - y];
      const [along, aside] = dx ? [ax * dx, Math.abs(ay)] : [ay * dy, Math.abs(ax)];
      if (along < 2 || (dx && aside > at.height + from.height)) continue;
      const far = along + aside * (dx ? 4 : 0.6);
      if (far < least) [best, least] = [at, far];
    }
    if (best) this.reveal(best.item);
  }
}
