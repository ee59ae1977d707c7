// Builds the page from the report, the graphs and the times.

const report = data("report");
const graphs = data("graphs");
const latency = data("latency");
const times = data("times");

// The panel beside the graph: tabs, of which one is shown.

class Panel {
  constructor() {
    this.tabs = el("div", { class: "panel-tabs", role: "tablist", "aria-label": "Sections" });
    this.pages = el("div", { class: "pages" });
    this.fold = el("button", { type: "button", class: "fold", "aria-expanded": "true", "aria-controls": "panel", title: "Hide or show the panel", "aria-label": "Hide or show the panel", onclick: () => this.setOpen(!this.isOpen) }, "›");
    this.element = el("aside", { id: "panel", "aria-label": "Details and report" }, this.tabs, this.pages);
    this.tabs.addEventListener("keydown", (event) => this.key(event));
    this.isOpen = true;
  }

  add(id, title, page, isWide) {
    const tab = el("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": page.id || id, "aria-selected": "false", tabindex: "-1", onclick: () => this.open(id) }, title);
    page.id = page.id || id;
    dress(page, { role: "tabpanel", "aria-labelledby": tab.id, hidden: true, tabindex: "0" }, []);
    [tab.page, tab.isWide] = [page, isWide];
    this.tabs.append(tab);
    this.pages.append(page);
  }

  open(id) {
    for (const tab of this.tabs.children) {
      const isChosen = tab.id === `tab-${id}`;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      tab.page.hidden = !isChosen;
      if (!isChosen) continue;
      this.element.classList.toggle("wide", Boolean(tab.isWide));
      this.pages.scrollTop = 0;
      this.current = id;
    }
    this.setOpen(true);
  }

  setOpen(isOpen) {
    this.isOpen = isOpen;
    document.body.classList.toggle("folded", !isOpen);
    this.fold.setAttribute("aria-expanded", String(isOpen));
  }

  key(event) {
    const tabs = [...this.tabs.children];
    const at = tabs.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    const next = tabs[(to + tabs.length) % tabs.length];
    event.preventDefault();
    this.open(next.id.slice(4));
    next.focus();
  }
}

// Links to nodes: `#node=NAME`, with the graph, the function and the number where the name alone is not enough.

function addressOf(side, number, index) {
  const { nodes } = graphs[side][number];
  const { name } = nodes[index];
  const isUnique = name && nodes.filter((node) => node.name === name).length === 1;
  const usual = side === "after" || !graphs.after.length;
  const parts = [isUnique ? `node=${encodeURIComponent(plain(name))}` : `node=${index}`, !usual && `graph=${side}`, number > 0 && `function=${number}`];
  return `#${parts.filter(Boolean).join("&")}`;
}

function goToAddress(drawing) {
  const asked = new URLSearchParams(location.hash.slice(1));
  if (!asked.has("node") || !drawing) return;
  const side = asked.get("graph") === "before" || !graphs.after.length ? "before" : "after";
  const number = Number(asked.get("function") || 0);
  const nodes = (graphs[side][number] || { nodes: [] }).nodes;
  const wanted = asked.get("node");
  let index = nodes.findIndex((node) => plain(node.name) === wanted);
  if (index < 0 && /^\d+$/.test(wanted) && Number(wanted) < nodes.length) index = Number(wanted);
  if (index >= 0) drawing.show(side, number, index);
}

function noGraphs() {
  return el("section", { id: "graph", "aria-label": "Graph" }, el("p", { class: "nothing dim" },
    report.kind === "failed" ? "The conversion failed before there was a graph." : "The graphs were not kept. `tfconvert MODEL -o model.tflite --report report.html` and `tfconvert.convert(model, keep_graphs=True)` keep them."));
}

function giveTimes() {
  report.hasLatency = Boolean(latency) && Boolean(graphs);
  if (!report.hasLatency) return;
  if (Array.isArray(latency)) {
    const ops = graphs.after[0].nodes.filter((node) => node.op !== "Input" && node.op !== "Output");
    ops.forEach((node, index) => typeof latency[index] === "number" && (node.ms = latency[index]));
  } else for (const each of graphs.after) for (const node of each.nodes) if (node.name in latency) node.ms = latency[node.name];
}

function start() {
  if (report.failure) report.kind = "failed";
  if (!report.accelerators && graphs) report.accelerators = graphs.accelerators;
  readTheme();
  giveTimes();
  const panel = new Panel();
  let details = null;
  const onSelect = (side, number, item, enter) => {
    details.show(side, number, item);
    if (panel.current !== "details" || item) panel.open("details");
    document.body.classList.toggle("selecting", Boolean(item));
    // A page inside a document, as in a notebook, has no address of its own.
    if (item && item.kind === "op" && location.protocol !== "about:") history.replaceState(null, "", addressOf(side, number, item.index));
    if (enter) details.element.focus();
  };
  const drawing = graphs && (graphs.before.length || graphs.after.length) ? new Graphs(onSelect) : null;
  details = new Details(drawing, overview);
  const found = [
    ["differences", "Differences", differencesSection(drawing), true], ["notes", null, notesSection(drawing)], ["size", "Size", report.kind === "failed" ? null : sizeSection(drawing)],
    ["speed", "Latency", latencySection(drawing), true], ["quantization", "Quantization", quantizationSection(), true], ["tuning", "Tuning", tuningSection(), true], ["accelerators", "Accelerators", acceleratorSection(), true],
    ["verification", "Verification", verificationSection()], ["fusions", "Fusions", fusionSection(drawing), true],
  ];
  panel.add("details", "Details", el("div", { id: "details" }, details.element));
  for (const [id, title, page, isWide] of found) if (page) panel.add(id, title || page.querySelector("h2").textContent, page, isWide);
  document.getElementById("top").append(...header(drawing, panel), panel.fold);
  const warning = banner(drawing, panel);
  if (warning) document.getElementById("top").after(warning);
  document.getElementById("main").append(drawing ? drawing.element() : noGraphs(), panel.element);
  panel.open("details");
  if (window.matchMedia("(max-width: 860px)").matches) panel.setOpen(false);
  if (!drawing) return;
  const first = report.kind === "conversion" ? ["before", "after"] : ["after", "before"];
  drawing.open(report.kind === "comparison" ? drawing.sides : [first.find((side) => drawing.sides.includes(side))]);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readTheme();
    drawing.recolor(drawing.mode.id);
  });
  window.addEventListener("hashchange", () => goToAddress(drawing));
  goToAddress(drawing);
}

start();
