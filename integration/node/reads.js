// Reads a remapped dataset with LanceDB for Node, which finds it as the table "remapped" of the database DIR.
//
//	node reads.js DIR EXPECTED_JSON
//
// Prints for each index {"path", "index", "type", "checks", "ok", "failed": [{"check", "kind", "query", "say"}]}, as
// integration/py/check_remapped.py does. Queries for which LanceDB for Node has no form are left out: phrases, MinHash,
// functions on shapes, vectors that are not of 32-bit floats.
"use strict";
const fs = require("node:fs");
const crypto = require("node:crypto");
const lancedb = require("@lancedb/lancedb");

const ascending = (ids) => [...ids].sort((a, b) => a - b);
const digest = (ids) => crypto.createHash("sha256").update(ascending(ids).join(",")).digest("hex");
const asked = (c) => !c.phrase && !("minhash" in c) && !(c.filter || "").startsWith("st_") && c.metric !== "hamming" && !c.dtype;

function right(check, found) {
  const ids = check.distinct ? [...new Set(found)] : found;
  if ("count" in check) return ids.length === check.count && digest(ids) === check.sha256;
  return ascending(ids).join() === ascending(check.ids).join();
}

async function answer(table, check, kind, column, id) {
  let query;
  if ("filter" in check) {
    query = table.query().where(check.filter).limit(1000000);
  } else if ("fts" in check) {
    query = table.query().fullTextSearch(check.fts, { columns: [column] }).limit(1000000);
  } else {
    query = table.query().nearestTo(Float32Array.from(check.nearest)).column(column);
    query = query.distanceType(check.metric || "l2").nprobes(check.nprobes || 16).refineFactor(check.refine || 30).limit(check.k);
    if (kind.includes("HNSW")) query = query.ef(Math.max(600, check.k * (check.refine || 30)));
    if (check.where) query = query.where(check.where);
  }
  const rows = await query.select([id]).toArray();
  return rows.map((row) => Number(row[id]));
}

async function main([folder, path]) {
  const expected = JSON.parse(fs.readFileSync(path, "utf8"));
  const table = await (await lancedb.connect(folder)).openTable("remapped");
  for (const q of expected.queries) {
    const kind = q.type.replace("cfg:", "").toUpperCase();
    const checks = q.checks.filter(asked);
    const failed = [];
    for (const [n, check] of checks.entries()) {
      const query = check.filter || check.fts || "nearest";
      try {
        const found = await answer(table, check, kind, q.column, expected.id_column);
        if (!right(check, found)) failed.push({ check: n, kind: "wrong", query, say: `${found.length} rows` });
      } catch (e) {
        failed.push({ check: n, kind: "error", query, say: String(e).slice(0, 200) });
      }
    }
    console.log(JSON.stringify({ path: folder, index: q.index, type: kind, checks: checks.length, ok: checks.length - failed.length, failed }));
  }
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (e) => {
    console.error(e);
    process.exit(1);
  },
);
