// Sorts the tables of a page by a click on a column's name, and shows only the rows whose policy is
// chosen by name and kind. Without JavaScript the tables are as they are.
"use strict";

// The number with which a cell begins, such as 0.3444 of "0.3444" and of "[0.33, 0.35]"; else NaN.
function numberOf(text) {
  return parseFloat(text.replace("−", "-").replace(/^[[+]/, ""));
}

function compare(left, right) {
  const numbers = [numberOf(left), numberOf(right)];
  if (numbers.every((number) => !isNaN(number))) return numbers[0] - numbers[1];
  if (numbers.some((number) => !isNaN(number))) return isNaN(numbers[0]) ? -1 : 1;
  return left.localeCompare(right);
}

function sortBy(table, column) {
  const heads = table.tHead.rows[0].cells;
  // A column of numbers begins with the largest.
  const known = heads[column].getAttribute("aria-sort");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const text = (row) => row.cells[column].textContent.trim();
  const numeric = rows.some((row) => !isNaN(numberOf(text(row))));
  const descending = known ? known === "ascending" : numeric;
  for (const head of heads) head.removeAttribute("aria-sort");
  heads[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
  rows.sort((left, right) => (descending ? -1 : 1) * compare(text(left), text(right)));
  body.append(...rows);
}

function makeSortable(table) {
  Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.title = "sort by this column";
    button.append(...head.querySelector("p, span")?.childNodes ?? head.childNodes);
    head.replaceChildren(button);
    button.addEventListener("click", (event) => {
      if (!(event.target instanceof HTMLAnchorElement)) sortBy(table, column);
    });
  });
}

// The kind of each policy, from the table that has it.
function kindsOf(tables) {
  for (const table of tables) {
    const heads = Array.from(table.tHead.rows[0].cells, (head) => head.textContent.trim());
    const column = heads.indexOf("kind");
    if (column < 0) continue;
    const rows = Array.from(table.tBodies[0].rows);
    return new Map(
      rows.map((row) => [row.cells[0].textContent.trim(), row.cells[column].textContent.trim()]),
    );
  }
  return new Map();
}

function makeFilter(tables) {
  const kinds = kindsOf(tables);
  const fields = document.createElement("form");
  fields.className = "filter";
  fields.role = "search";
  const name = document.createElement("input");
  name.type = "search";
  name.placeholder = "part of a policy's name";
  name.setAttribute("aria-label", "show policies whose name has this text");
  const kind = document.createElement("select");
  kind.setAttribute("aria-label", "show policies of this kind");
  kind.append(new Option("all kinds", ""));
  for (const known of new Set(kinds.values())) kind.append(new Option(known, known));
  const count = document.createElement("output");
  function show() {
    const wanted = name.value.trim().toLowerCase();
    const chosen = (policy) =>
      policy.toLowerCase().includes(wanted) && (!kind.value || kinds.get(policy) === kind.value);
    for (const table of tables) {
      for (const row of table.tBodies[0].rows) {
        row.hidden = !chosen(row.cells[0].textContent.trim());
      }
    }
    const shown = Array.from(kinds.keys()).filter(chosen).length;
    count.textContent = `${shown} of ${kinds.size} policies`;
  }
  fields.append(name, kind, count);
  fields.addEventListener("input", show);
  fields.addEventListener("submit", (event) => event.preventDefault());
  show();
  return fields;
}

document.addEventListener("DOMContentLoaded", () => {
  const tables = Array.from(document.querySelectorAll("article table")).filter((table) => table.tHead);
  tables.forEach(makeSortable);
  const ofPolicies = tables.filter(
    (table) => table.tHead.rows[0].cells[0].textContent.trim() === "policy",
  );
  const title = document.querySelector("article h1");
  if (ofPolicies.length && title) title.after(makeFilter(ofPolicies));
});
