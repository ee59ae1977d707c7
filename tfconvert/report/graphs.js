// The graphs of a page: one or two drawings beside each other, with their tools, the search, and the legend.

class Graphs {
  constructor(onSelect) {
    this.onSelect = onSelect; // Called with the side, the function's number, an item or nothing, and whether to go there.
    this.views = new Map();
    this.sides = ["before", "after"].filter((side) => graphs[side].length);
    this.number = { before: 0, after: 0 };
    this.modes = colourModes(report);
    this.mode = this.modes[0];
    this.stage = el("div", { class: "stages" });
    this.became = new Map();
    graphs.after.forEach((each, number) => Object.entries(each.links || {}).forEach(([index, links]) => {
      for (const kind of ["from", "folded"]) {
        for (const place of links[kind]) {
          const known = this.became.get(place.join()) || { from: [], folded: [] };
          known[kind].push([number, Number(index)]);
          this.became.set(place.join(), known);
        }
      }
    }));
  }

  node(side, number, index) {
    return graphs[side][number].nodes[index];
  }

  links(side, number, index) {
    const known = side === "after" ? (graphs.after[number].links || {})[index] : this.became.get([number, index].join());
    return known || { from: [], folded: [] };
  }

  users(side, number, index) {
    const users = [];
    graphs[side][number].nodes.forEach((node, user) => {
      if ((node.operands || []).some((operand) => Array.isArray(operand) && operand[0] === index)) users.push(user);
    });
    return users;
  }

  titleOf(side) {
    if (report.kind === "comparison") return side === "before" ? baseName(report.first.source) : baseName(report.source);
    return side === "before" ? (report.kind ? "Model" : "Before") : report.kind === "file" ? "Graph" : report.kind ? "Converted" : "After";
  }

  viewOf(side) {
    const number = this.number[side];
    const key = `${side} ${number}`;
    if (!this.views.has(key)) {
      const { nodes } = graphs[side][number];
      const tree = buildTree(nodes);
      const problems = new Set();
      for (const leaf of tree.leaves) if ((leaf.node.problems || []).length) for (let at = leaf.parent; at; at = at.parent) problems.add(at);
      const view = new GraphView(tree, {
        title: `Graph ${this.titleOf(side)}, ${many(nodes.length, "node")}`, mode: this.mode, problems,
        onSelect: (item, enter) => this.selected(side, number, item, enter),
      });
      this.views.set(key, view);
    }
    return this.views.get(key);
  }

  get view() {
    return this.viewOf(this.active);
  }

  // Shows one side, or both.
  open(sides) {
    this.shown = sides;
    if (!sides.includes(this.active)) this.active = sides[sides.length - 1];
    const labels = sides.length > 1 ? sides.map((side) => el("p", { class: "name" }, this.titleOf(side))) : [];
    this.stage.replaceChildren(...sides.map((side, index) => el("div", { class: "stage" }, labels[index], this.viewOf(side).element)));
    for (const tab of this.tabs) tab.setAttribute("aria-pressed", String(tab.sides.join() === sides.join()));
    this.fillPicker();
    for (const side of sides) {
      const view = this.viewOf(side);
      view.mode.prepare(view.tree.leaves);
      if (!view.items) {
        view.arrange();
        view.home();
      }
      view.recolor(this.mode);
      view.drawNow();
    }
    this.fillLegend();
    this.find();
  }

  openFunction(side, number) {
    [this.active, this.number[side]] = [side, number];
    this.open(this.shown.includes(side) ? this.shown : [side]);
  }

  show(side, number, index) {
    if (!this.shown.includes(side) || this.number[side] !== number) this.openFunction(side, number);
    this.active = side;
    this.view.reveal(this.view.tree.leaves[index], true);
  }

  selected(side, number, item, enter) {
    this.active = side;
    const other = side === "after" ? "before" : "after";
    for (const [key, view] of this.views) {
      view.marked.clear();
      if (!key.startsWith(other)) continue;
      const places = item && item.kind === "op" ? this.links(side, number, item.index).from : [];
      for (const [place, index] of places) if (key === `${other} ${place}`) view.marked.add(view.tree.leaves[index]);
      const [first] = view.marked;
      if (first && this.shown.length > 1 && this.viewOf(other) === view) {
        view.selected = null;
        if (view.where.has(first)) view.center(view.where.get(first));
      }
      view.draw();
    }
    if (item) say(item.kind === "group" ? `layer ${item.label}, ${many(item.ops, "op")}` : `${item.node.op} ${item.node.name}`);
    this.onSelect(side, number, item, enter);
  }

  recolor(id) {
    this.mode = this.modes.find((mode) => mode.id === id) || this.mode;
    this.colours.value = this.mode.id;
    for (const side of this.shown) this.viewOf(side).recolor(this.mode);
    if (this.mode.isForResult && !this.shown.includes("after") && graphs.after.length) this.open(["after"]);
    this.fillLegend();
  }

  fillLegend() {
    // Of two graphs, the legend counts both.
    const leaves = this.shown.flatMap((side) => this.viewOf(side).tree.leaves);
    const isTwice = (leaf) => this.mode.id === "change" && this.shown.length > 1 && this.viewOf("before").tree.leaves[leaf.index] === leaf;
    this.mode.prepare(leaves.filter((leaf) => !isTwice(leaf) || leaf.node.change === "removed"));
    for (const side of this.shown) this.viewOf(side).draw();
    this.legend.replaceChildren(...this.mode.legend());
  }

  fillPicker() {
    const { active } = this;
    const names = graphs[active].map((each) => each.keys.join(", ") || each.name);
    this.picker.replaceChildren(...names.map((name, number) => el("option", { value: number, selected: number === this.number[active] }, cut(plain(name), 60))));
    this.picker.hidden = names.length < 2;
  }

  // Finds ops whose kind, names or source lines contain all words.
  find() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.found.replaceChildren();
    this.found.hidden = !words.length;
    for (const view of this.views.values()) view.hits.clear();
    const hits = [];
    for (const side of words.length ? this.shown : []) {
      graphs[side].forEach((each, number) => each.nodes.forEach((node, index) => {
        const text = [node.op, node.name, node.scope, ...(node.names || []), ...(node.sources || [])].join(" ").toLowerCase();
        if (!words.every((word) => text.includes(word))) return;
        hits.push([side, number, index, node]);
        if (number === this.number[side]) this.viewOf(side).hits.add(this.viewOf(side).tree.leaves[index]);
      }));
    }
    for (const side of this.shown) this.viewOf(side).draw();
    if (!words.length) return;
    const rows = hits.slice(0, 60).map(([side, number, index, node]) => el("li", {}, el("button", {
      type: "button", class: "ref", onclick: () => this.show(side, number, index),
    }, el("b", {}, node.op), ` ${tail(plain(node.name), 70)}`)));
    const head = hits.length > 60 ? `${many(hits.length, "op")}, the first 60` : many(hits.length, "op");
    this.found.append(el("p", { class: "dim" }, head), el("ul", {}, rows));
    say(`${many(hits.length, "op")} found`);
  }

  // Hands the drawing to the browser as a file.
  save(kind) {
    const { view } = this;
    const name = `${baseName(report.source).replace(/\.\w+$/, "") || "graph"}.${kind}`;
    const give = (blob) => {
      const link = el("a", { href: URL.createObjectURL(blob), download: name });
      document.body.append(link);
      link.click();
      link.remove();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    };
    if (kind === "svg") give(new Blob([view.toSvg()], { type: "image/svg+xml" }));
    else view.toCanvas().toBlob(give);
  }

  // The nodes that cause each error, as sides, functions and indices.
  problemPlaces() {
    const places = new Map();
    for (const side of this.sides) {
      graphs[side].forEach((each, number) => each.nodes.forEach((node, index) => {
        for (const problem of node.problems || []) places.set(problem, [...(places.get(problem) || []), [side, number, index]]);
      }));
    }
    return places;
  }

  firstProblem() {
    return ([...this.problemPlaces()].sort((one, other) => one[0] - other[0])[0] || [0, [null]])[1][0];
  }

  buildSearch() {
    this.search = el("input", { type: "search", placeholder: "Search ops, names, lines", "aria-label": "Search the graph", oninput: () => this.find() });
    this.search.addEventListener("keydown", (event) => {
      const first = this.found.querySelector("button");
      if (event.key === "Enter" && first) {
        first.click();
        this.found.hidden = true;
      }
      if (event.key === "ArrowDown" && first) first.focus();
      if (event.key === "Escape") this.search.value = "";
      if (event.key === "Escape") this.find();
    });
    this.found = el("div", { class: "found", hidden: true });
    this.found.addEventListener("keydown", (event) => {
      const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
      if (!step) return;
      event.preventDefault();
      const row = document.activeElement.closest("li")[step];
      (row ? row.querySelector("button") : this.search).focus();
    });
    return el("div", { class: "search" }, this.search, this.found);
  }

  element() {
    const tab = (sides, words) => {
      const button = el("button", { type: "button", class: "tab", onclick: () => this.open(sides) }, words);
      button.sides = sides;
      return button;
    };
    const tool = (words, label, act) => el("button", { type: "button", class: "tool", title: label, "aria-label": label, onclick: act }, words);
    const total = (side) => count(graphs[side].reduce((all, each) => all + each.nodes.filter((node) => !["Input", "Output"].includes(node.op)).length, 0));
    this.tabs = this.sides.map((side) => tab([side], `${cut(plain(this.titleOf(side)), 28)} · ${total(side)}`));
    if (this.sides.length > 1) this.tabs.push(tab(this.sides, "Both"));
    this.picker = el("select", { "aria-label": "Function", onchange: (event) => this.openFunction(this.active, Number(event.target.value)) });
    this.colours = el("select", { "aria-label": "Colour by", onchange: (event) => this.recolor(event.target.value) },
      this.modes.map((mode) => el("option", { value: mode.id }, mode.label)));
    this.legend = el("div", { class: "legend", role: "group", "aria-label": "Legend" });
    const isPhone = window.matchMedia("(max-width: 860px)").matches;
    const key = el("details", { class: "key", open: !isPhone }, el("summary", {}, "Colours"), el("label", {}, el("span", { class: "unseen" }, "Colour by"), this.colours), this.legend);
    const menu = el("details", { class: "menu" }, el("summary", { title: "Save the drawing as a file" }, "Save"),
      el("div", {}, el("button", { type: "button", class: "button", onclick: () => this.save("svg") }, "SVG"), el("button", { type: "button", class: "button", onclick: () => this.save("png") }, "PNG")));
    const keys = el("p", { class: "unseen", id: "graph-keys" },
      "Drag or scroll to move, pinch or Ctrl and wheel to zoom. Arrows go from op to op, Enter opens a layer or goes to the details of an op, plus and minus zoom, 1 shows the start at natural size, 0 shows everything, Escape selects nothing.");
    return el("section", { id: "graph", "aria-label": "Graph" }, keys,
      el("div", { class: "bar" }, this.sides.length > 1 && el("div", { class: "tabs", role: "group", "aria-label": "Which graph" }, this.tabs), this.picker, this.buildSearch()),
      this.stage, key,
      el("div", { class: "tools", role: "group", "aria-label": "Drawing" },
        tool("+", "Zoom in", () => this.view.zoom(1.3)), tool("−", "Zoom out", () => this.view.zoom(0.77)),
        tool("1:1", "Natural size", () => this.view.home()), tool("Fit", "Show the whole graph", () => this.view.fit()),
        tool("Open", "Open all layers", () => this.view.toggleAll(true, 12000)),
        tool("Close", "Close all layers", () => this.view.toggleAll(false, 0)), menu));
  }
}
