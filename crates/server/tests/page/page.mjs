// page.mjs FOREBAY PICTURES [keep]: the page of `forebay serve --metrics` in a browser without a window: as it is with numbers
// that stand still, beside pictures that are kept in a folder, in light and dark, wide and narrow; by keyboard alone; as a screen
// reader has it, by axe; and under load. `keep` keeps pictures anew.
import assert from "node:assert";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [forebay, folder, keep] = process.argv.slice(2);
const fixture = JSON.parse(readFileSync("stats.json", "utf8"));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// Pictures may differ by this: other fonts have other widths. Another colour, or a part that is missing, is beyond.
const HEIGHT_SHARE = 0.1, DIFFERENCE_MAX = 4;

/** A server that is asked, and told to end. */
async function serve() {
  const data = mkdtempSync(join(tmpdir(), "forebay-page-"));
  const server = spawn(forebay, ["serve", join(data, "db"), "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--memory", "64M"], { stdio: ["ignore", "ignore", "pipe"] });
  let told = "";
  server.stderr.on("data", text => { told += text; });
  for (let tries = 0; !told.includes("http://"); tries += 1) {
    assert(tries < 200 && server.exitCode === null, told);
    await new Promise(done => setTimeout(done, 50));
  }
  const end = () => new Promise(done => {
    server.on("exit", code => { rmSync(data, { recursive: true }); done(code); });
    server.kill("SIGTERM");
  });
  return { port: /listening at .*:(\d+)/.exec(told)[1], url: /http:\/\/\S+/.exec(told)[0], end };
}

/** A page, and what its console tells of errors. */
async function open(browser, url, options, numbers) {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const errors = [];
  page.on("console", message => { if (message.type() === "error") errors.push(message.text()); });
  page.on("pageerror", error => errors.push(String(error)));
  page.on("requestfailed", request => errors.push(request.url()));
  page.on("request", request => assert(request.url().startsWith(url), `${request.url()} is fetched from elsewhere`));
  if (numbers) {
    await page.addInitScript(() => { const wait = window.setTimeout; window.setTimeout = (run, pause) => wait(run, Math.min(pause, 5)); });
    let step = 0;
    await page.route("**/stats.json", async route => {
      // Behind the last one no answer comes: the page stands still.
      if (step <= 90) await route.fulfill({ json: numbers(step++) });
    });
  }
  await page.goto(url);
  return { page, errors, context };
}

/** The numbers of a second: a load that goes up and down. */
function still(step) {
  const now = structuredClone(fixture), { server, database } = now;
  const done = sum => Math.round(sum * (step * 100 + 300 * Math.sin(step / 7) + 120 * Math.sin(step / 3)));
  now.now_milliseconds += step * 1000;
  server.commands += done(1900);
  database.gets += done(1100);
  database.user_records += done(700);
  database.user_bytes += done(30000);
  database.log_bytes += done(36000);
  database.log_syncs += done(0.4);
  database.stall_seconds += Math.max(0, step - 60) * 0.004;
  return now;
}

/** How far two pictures are from one another, from 0 to 255, where they are small enough that no letter is seen. */
async function difference(page, one, other) {
  return page.evaluate(async pictures => {
    const pixels = [];
    for (const picture of pictures) {
      const image = new Image();
      image.src = "data:image/png;base64," + picture;
      await image.decode();
      const canvas = new OffscreenCanvas(48, 96), context = canvas.getContext("2d");
      context.imageSmoothingQuality = "high";
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      pixels.push({ data: context.getImageData(0, 0, canvas.width, canvas.height).data, height: image.naturalHeight });
    }
    const [{ data: a, height }, { data: b, height: kept }] = pixels;
    let sum = 0;
    for (let at = 0; at < a.length; at += 1) sum += Math.abs(a[at] - b[at]);
    return { mean: sum / a.length * 4 / 3, height: Math.abs(height - kept) / kept };
  }, [one, other].map(bytes => bytes.toString("base64")));
}

const SHAPES = [["light", 1180], ["dark", 1180], ["light", 390], ["dark", 390]];

async function pictures(browser, url) {
  const all = new Map();
  for (const [colorScheme, width] of SHAPES) {
    const name = `page-${colorScheme}-${width > 600 ? "wide" : "narrow"}.png`;
    const { page, errors, context } = await open(browser, url, { colorScheme, viewport: { width, height: 900 } }, still);
    await page.waitForFunction(() => document.getElementById("history-text").textContent.startsWith("The last 90 s"));
    assert.deepEqual(errors, [], name);
    assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name}: it is wider than its window`);
    const picture = await page.screenshot({ fullPage: true });
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }));
    assert.deepEqual(violations.map(one => [one.id, one.nodes.map(node => node.html).slice(0, 3)]), [], name);
    all.set(name, picture);
    if (keep) {
      writeFileSync(join(folder, name), picture);
      // A quarter of the bytes, where the tool is there.
      spawnSync("pngquant", ["--force", "--ext", ".png", "64", join(folder, name)]);
    }
    const { mean, height } = await difference(page, picture, readFileSync(join(folder, name)));
    assert(mean < DIFFERENCE_MAX && height < HEIGHT_SHARE, `${name}: differs by ${mean}, in height by ${height}; if it is to, keep pictures anew: ${folder}`);
    await page.evaluate(() => document.getElementById("tables").remove());
    const lacking = await difference(page, await page.screenshot({ fullPage: true }), picture);
    assert(lacking.mean > DIFFERENCE_MAX || lacking.height > HEIGHT_SHARE, "a part that is missing is seen");
    await context.close();
  }
  console.log("the page is as its pictures, and axe finds nothing");
}

async function keyboard(browser, url) {
  const { page, errors, context } = await open(browser, url, { viewport: { width: 1180, height: 900 } }, still);
  await page.waitForSelector("#causes table");
  const focused = () => page.evaluate(() => {
    const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
    return { text: one.getAttribute("aria-label") || one.id || one.textContent, seen: style.outlineStyle !== "none" && box.width > 0 && box.right > 0 };
  });
  const stops = [];
  for (let stop = 0; stop < 3; stop += 1) {
    await page.keyboard.press("Tab");
    const { text, seen } = await focused();
    assert(seen, `the focus on ${text} is seen`);
    stops.push(text);
  }
  assert.deepEqual(stops, ["Skip to the numbers", "pause", "Causes"]);
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Space");
  assert.equal(await page.getAttribute("#pause", "aria-pressed"), "true");
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Enter");
  assert.equal((await focused()).text, "main");
  // What a screen reader is told of pictures and regions.
  for (const name of ["Table events", "Memory by owner", "Hottest keys", "Slow requests"]) {
    assert.equal(await page.getByRole("region", { name, exact: true }).count(), 1, name);
  }
  assert.equal(await page.getByRole("img", { name: /of 64 MiB are used/ }).count(), 1);
  assert.equal(await page.getByRole("table").count(), 4);
  assert.equal(await page.getByRole("status").count(), 1);
  assert.deepEqual(errors, []);
  await context.close();
  console.log("the page can be used by keyboard");
}

async function underLoad(browser, { url, port }) {
  const { page, errors, context } = await open(browser, url, { viewport: { width: 1180, height: 900 } });
  const load = spawn("redis-benchmark", ["-p", port, "-n", "100000000", "-r", "100000", "-d", "50", "-P", "16", "-t", "set,get", "-q"], { stdio: "ignore" });
  try {
    await page.waitForFunction(() => document.querySelectorAll("#tables svg").length > 0 && Number(document.getElementById("commands").textContent.replace(/[^\d.]/g, "")) > 0 &&
      Number(document.querySelector("#history polyline").getAttribute("points").split(" ").length) >= 4, null, { timeout: 60000 });
    assert.deepEqual(errors, []);
  } finally {
    load.kill("SIGKILL");
    await context.close();
  }
  console.log("the page follows a load");
}

const server = await serve();
const browser = await chromium.launch({ executablePath: process.env.BROWSER, args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"] });
try {
  await pictures(browser, server.url);
  await keyboard(browser, server.url);
  await underLoad(browser, server);
} finally {
  await browser.close();
  assert.equal(await server.end(), 0, "the server ends in order");
}
