// Layered layout, from top to bottom. The inside of each group is laid out separately, as one box in its parent group.

const WIDTH = 236;
const TITLE = 26; // The height of the title of a box.
const LINE = 15; // The height of a line of text below it.
const PORT = { width: 212, height: 42 };
const GROUP = { width: 236, height: 52 };
const HEADER = 30;
const PADDING = 18;
const LAYER_GAP = 44;
const GAP = 24;
const BEND = 10; // The width of an edge where it passes a layer.
const END_STEP = 16; // Between the ends of edges at a box.
const MAX_BENDS = 4000;

function sizeOf(item) {
  if (item.isPort) return PORT;
  if (item.kind === "op") return { width: WIDTH, height: TITLE + 7 + LINE * linesOf(item.node).length };
  if (!item.expanded) return GROUP;
  const inside = place(item);
  return { width: Math.max(inside.width + 2 * PADDING, 160), height: inside.height + HEADER + 2 * PADDING };
}

// Returns the positions of a group's children, relative to its inside, and the bends of its edges.
function place(group) {
  if (group.placed) return group.placed;
  const boxes = group.children.map((item) => ({ item, ...sizeOf(item), rank: 0, above: [], below: [], x: 0, y: 0 }));
  const boxOf = new Map(boxes.map((box) => [box.item, box]));
  const edges = [];
  for (const [from, targets] of group.edges) {
    for (const [to, { tensors, type }] of targets) edges.push({ from: boxOf.get(from), to: boxOf.get(to), tensors, type, bends: [] });
  }
  rank(boxes, edges);
  const layers = intoLayers(boxes, edges);
  order(layers);
  spread(layers);
  group.placed = measured(boxes, edges, layers);
  return group.placed;
}

// Assigns each box to a layer after its inputs. In a cycle of groups, the edge against the model's order is reversed.
function rank(boxes, edges) {
  const readers = new Map(boxes.map((box) => [box, []]));
  const waiting = new Map(boxes.map((box) => [box, 0]));
  for (const edge of edges) {
    readers.get(edge.from).push(edge);
    waiting.set(edge.to, waiting.get(edge.to) + 1);
  }
  const ready = boxes.filter((box) => !waiting.get(box));
  const left = new Set(boxes);
  let next = 0;
  while (left.size) {
    if (next === ready.length) ready.push(left.values().next().value);
    const box = ready[next++];
    if (!left.delete(box)) continue;
    for (const edge of readers.get(box)) {
      edge.turned = !left.has(edge.to);
      if (edge.turned) continue;
      edge.to.rank = Math.max(edge.to.rank, box.rank + 1);
      waiting.set(edge.to, waiting.get(edge.to) - 1);
      if (!waiting.get(edge.to)) ready.push(edge.to);
    }
  }
  // A box without inputs is next to its first user.
  const written = new Set(edges.filter((edge) => !edge.turned).map((edge) => edge.to));
  for (const box of boxes) {
    const ranks = readers.get(box).filter((edge) => !edge.turned).map((edge) => edge.to.rank);
    if (!written.has(box) && ranks.length) box.rank = Math.max(0, Math.min(...ranks) - 1);
  }
}

function intoLayers(boxes, edges) {
  const layers = [];
  const at = (index) => (layers[index] = layers[index] || []);
  for (const box of boxes) at(box.rank).push(box);
  for (let index = 0; index < layers.length; index++) at(index);
  let bends = 0;
  for (const edge of edges) {
    let [upper, lower] = edge.turned ? [edge.to, edge.from] : [edge.from, edge.to];
    if (bends < MAX_BENDS) {
      for (let index = upper.rank + 1; index < lower.rank; index++) {
        const bend = { width: BEND, height: 0, rank: index, above: [upper], below: [], x: 0, y: 0, isBend: true };
        upper.below.push(bend);
        at(index).push(bend);
        edge.bends.push(bend);
        upper = bend;
        bends++;
      }
    } else if (lower.rank > upper.rank + 1) continue;
    upper.below.push(lower);
    lower.above.push(upper);
  }
  return layers;
}

// Sorts the layers so that fewer edges cross: each box goes to the mean position of its neighbours.
function order(layers) {
  const number = (layer) => layer.forEach((box, index) => (box.place = index));
  layers.forEach(number);
  for (let sweep = 0; sweep < 6; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      for (const box of layer) {
        const near = down ? box.above : box.below;
        box.wish = near.length ? near.reduce((sum, other) => sum + other.place, 0) / near.length : box.place;
      }
      layer.sort((one, other) => one.wish - other.wish || one.place - other.place);
      number(layer);
    }
  }
}

// Moves boxes to the mean of their neighbours, without overlaps.
function spread(layers) {
  for (const layer of layers) {
    let x = 0;
    for (const box of layer) {
      box.x = x + box.width / 2;
      x += box.width + GAP;
    }
    for (const box of layer) box.x -= (x - GAP) / 2;
  }
  for (let sweep = 0; sweep < 9; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) settle(layer, down);
  }
}

// The positions nearest to the wanted ones that keep the order. Neighbours that would overlap move as one block.
function settle(layer, down) {
  const blocks = [];
  let offset = 0;
  layer.forEach((box, index) => {
    if (index) offset += (layer[index - 1].width + box.width) / 2 + GAP;
    // The trunk stays straight, and edges that pass by are moved.
    const found = down ? box.above : box.below;
    const firm = found.filter((other) => !other.isBend);
    const near = firm.length ? firm : found.length ? found : [box];
    const wish = near.reduce((sum, other) => sum + other.x, 0) / near.length;
    const weight = box.isBend ? 0.001 : near[0] === box ? 0.3 : 1;
    box.offset = offset;
    blocks.push({ sum: (wish - offset) * weight, weight, boxes: [box] });
    while (blocks.length > 1) {
      const [last, before] = [blocks[blocks.length - 1], blocks[blocks.length - 2]];
      if (before.sum / before.weight <= last.sum / last.weight) break;
      before.sum += last.sum;
      before.weight += last.weight;
      before.boxes.push(...last.boxes);
      blocks.pop();
    }
  });
  for (const block of blocks) for (const box of block.boxes) box.x = block.sum / block.weight + box.offset;
}

function measured(boxes, edges, layers) {
  let y = 0;
  let [left, right] = [Infinity, -Infinity];
  for (const layer of layers) {
    const height = layer.reduce((most, box) => Math.max(most, box.height), 0);
    for (const box of layer) {
      box.y = y + (height - box.height) / 2;
      box.band = [y, y + height];
      left = Math.min(left, box.x - box.width / 2);
      right = Math.max(right, box.x + box.width / 2);
    }
    y += height + LAYER_GAP;
  }
  if (left === Infinity) [left, right] = [0, 0];
  for (const layer of layers) for (const box of layer) box.x -= left;
  spreadEnds(edges);
  return { boxes, edges, width: right - left, height: Math.max(0, y - LAYER_GAP) };
}

// Edges that leave or reach a box straight do so in its middle, the others beside it, each in a place of its own.
function spreadEnds(edges) {
  const ends = new Map();
  const add = (box, edge, name, toward) => {
    if (!ends.has(box)) ends.set(box, { leave: [], reach: [] });
    ends.get(box)[name].push([edge, toward - box.x]);
  };
  for (const edge of edges) {
    const [upper, lower] = edge.turned ? [edge.to, edge.from] : [edge.from, edge.to];
    add(upper, edge, "leave", (edge.bends[0] || lower).x);
    add(lower, edge, "reach", (edge.bends[edge.bends.length - 1] || upper).x);
  }
  for (const [box, both] of ends) {
    for (const [name, list] of Object.entries(both)) {
      for (const sign of [-1, 1]) {
        const aside = list.filter(([, dx]) => dx * sign > 0.5).sort((one, other) => (one[1] - other[1]) * sign);
        const isAlone = list.length === aside.length && name === "leave" && aside.length === 1;
        const step = Math.min(END_STEP, (box.width / 2 - END_STEP) / Math.max(aside.length, 1));
        aside.forEach(([edge], index) => (edge[name] = isAlone ? 0 : sign * step * (index + 1)));
      }
    }
  }
}

// Draws a smooth line, straight past boxes and bent between layers, by the calls of a canvas.
function trace(path, points) {
  path.moveTo(...points[0]);
  for (let index = 1; index < points.length; index++) {
    const [[x0, y0], [x1, y1]] = [points[index - 1], points[index]];
    const middle = (y0 + y1) / 2;
    if (Math.abs(x0 - x1) < 0.5) path.lineTo(x1, y1);
    else path.bezierCurveTo(x0, middle, x1, middle, x1, y1);
  }
}

function pointsOf(edge, dx, dy) {
  const [upper, lower] = edge.turned ? [edge.to, edge.from] : [edge.from, edge.to];
  const [start, end] = [upper.x + (edge.leave || 0) + dx, lower.x + (edge.reach || 0) + dx];
  const points = [[start, upper.y + upper.height + dy]];
  if (upper.band[1] > upper.y + upper.height + 1) points.push([start, upper.band[1] + dy]);
  for (const bend of edge.bends) points.push([bend.x + dx, bend.band[0] + dy], [bend.x + dx, bend.band[1] + dy]);
  if (lower.band[0] < lower.y - 1) points.push([end, lower.band[0] + dy]);
  points.push([end, lower.y + dy]);
  return points;
}
