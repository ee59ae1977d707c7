// Sections with bar charts and tables. A bar is a row of a table, so that it can be read aloud and copied.

function section(id, title, about, ...content) {
  return el("section", { id, class: "card", "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, title), about && el("p", { class: "dim about" }, about), ...content);
}

// Rows are `{ label, value, text, note, onclick }`. The longest bar is the largest value.
function bars(caption, heads, rows, limit = 12) {
  const largest = Math.max(...rows.map((row) => row.value), 1e-12);
  const body = el("tbody");
  const add = (list) => {
    for (const row of list) {
      const fill = el("span", { class: `fill ${row.style || ""}` });
      fill.style.width = `${Math.max((row.value / largest) * 100, row.value > 0 ? 0.6 : 0)}%`;
      const label = row.onclick ? el("button", { type: "button", class: "ref", onclick: row.onclick }, row.label) : el("span", {}, row.label);
      body.append(el("tr", {},
        el("th", { scope: "row", title: row.title || row.label }, el("div", { class: "label" }, label, row.note && el("small", {}, row.note))),
        el("td", { class: "bar" }, fill), el("td", { class: "number" }, row.text)));
    }
  };
  add(rows.slice(0, limit));
  const columns = el("colgroup", {}, ["name", "bar", "number"].map((name) => el("col", { class: name })));
  const head = el("thead", {}, el("tr", {}, heads.map((name) => el("th", { scope: "col" }, el("span", { class: "unseen" }, name)))));
  return [el("table", { class: "bars" }, el("caption", { class: "unseen" }, caption), columns, head, body), more(rows, limit, add)];
}

function table(caption, heads, rows, limit = 12) {
  const body = el("tbody");
  const add = (list) => list.forEach((cells) => body.append(el("tr", {}, cells.map((cell, index) => el(index ? "td" : "th", { scope: index ? null : "row", "data-head": heads[index] || null }, cell)))));
  add(rows.slice(0, limit));
  const head = el("thead", {}, el("tr", {}, heads.map((name) => el("th", { scope: "col" }, name))));
  const wide = el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { class: "rows" }, el("caption", { class: "unseen" }, caption), head, body));
  return [wide, more(rows, limit, add)];
}

function more(rows, limit, add) {
  if (rows.length <= limit) return null;
  const button = el("button", { type: "button", class: "button more", onclick: () => {
    add(rows.slice(limit, limit + 500));
    limit += 500;
    if (limit >= rows.length) button.remove();
    else button.textContent = `Show ${Math.min(500, rows.length - limit)} more`;
  } }, `Show ${count(Math.min(rows.length - limit, 500))} more`);
  return button;
}
