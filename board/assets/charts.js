// Charts: the figures of the time that a reader points at, with a mouse, a finger or the arrow keys, and
// times on the axes in the reader's zone. It uses `main`, `two`, `local` and `set` of board.js.
"use strict";

{
  /** The time that the reader points at, in milliseconds; null: none. */
  let pointed = null;
  const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

  const find = () => main.querySelector(".plots");

  /** When the first slot begins, how long a slot is, and how many there are. */
  function axis(plots) {
    const { start, slot, slots } = plots.dataset;
    return { start: Number(start), slot: Number(slot), slots: Number(slots) };
  }

  // ---- times on the axis ---------------------------------------------------------------------------

  /** A tick that is at a whole hour or day of UTC goes to one of the reader's zone. */
  function ticks(plots) {
    const { start, slot, slots } = axis(plots);
    const length = slot * slots;
    for (const text of plots.querySelectorAll("text.time")) {
      const every = Number(text.dataset.every);
      const utc = Number(text.dataset.tick);
      const ahead = -new Date(utc).getTimezoneOffset() * 60000;
      const shift = ((ahead % every) + every) % every;
      const ms = utc - shift < start && shift ? utc - shift + every : utc - shift;
      const at = new Date(ms);
      const isIn = ms < start + length;
      text.setAttribute("x", `${(((ms - start) / length) * 100).toFixed(2)}%`);
      const words = every >= 86400000
        ? `${DAYS[at.getDay()]} ${at.getDate()}`
        : `${two(at.getHours())}:${two(at.getMinutes())}`;
      set(text, isIn ? words : "");
    }
  }

  // ---- the figures of a time -----------------------------------------------------------------------

  const spoken = document.createElement("p");
  spoken.className = "unseen";
  spoken.setAttribute("role", "status");
  document.body.append(spoken);

  /** Shows what is pointed at; live updates have brought the page without it. */
  function point() {
    const plots = find();
    if (!plots) return;
    const { start, slot, slots } = axis(plots);
    const index = pointed === null ? -1 : Math.floor((pointed - start) / slot);
    if (index < 0 || index >= slots) {
      pointed = null;
      plots.classList.remove("pointed");
      return;
    }
    plots.classList.add("pointed");
    set(plots.querySelector(".when"), local(start + index * slot).slice(0, slot < 60000 ? 19 : 16));
    const x = `${(((index + 0.5) / slots) * 100).toFixed(3)}%`;
    for (const cross of plots.querySelectorAll(".cross")) {
      cross.setAttribute("x1", x);
      cross.setAttribute("x2", x);
    }
    for (const value of plots.querySelectorAll("[data-values]")) {
      if (value.dataset.all === undefined) value.dataset.all = value.textContent;
      set(value, value.dataset.values.split("|")[index] || "–");
    }
  }

  /** What the server wrote is in place again. */
  function leave() {
    const plots = find();
    if (pointed === null || !plots) return;
    pointed = null;
    plots.classList.remove("pointed");
    set(plots.querySelector(".when"), plots.dataset.when);
    for (const value of plots.querySelectorAll("[data-values]")) set(value, value.dataset.all ?? value.textContent);
  }

  function pointAt(ms) {
    const plots = find();
    if (pointed === null && plots) plots.dataset.when = plots.querySelector(".when").textContent;
    pointed = ms;
    point();
  }

  function follow(event) {
    const plot = event.target.closest?.(".plots .plot");
    if (!plot) return false;
    const { start, slot, slots } = axis(find());
    const box = plot.getBoundingClientRect();
    const part = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 0.9999);
    pointAt(start + Math.floor(part * slots) * slot);
    return true;
  }

  main.addEventListener("pointermove", follow);
  // What a finger has touched stays, until it touches something else.
  document.addEventListener("pointerdown", (event) => {
    if (!follow(event)) leave();
  });
  main.addEventListener("pointerout", (event) => {
    const isOver = event.relatedTarget?.closest?.(".plots .plot");
    if (event.pointerType === "mouse" && event.target.closest?.(".plots .plot") && !isOver) leave();
  });

  // ---- keys ----------------------------------------------------------------------------------------

  const STEPS = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };

  main.addEventListener("keydown", (event) => {
    if (!event.target.matches(".plots") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") return leave();
    const by = STEPS[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const { start, slot, slots } = axis(event.target);
    const at = pointed === null ? slots - (by === -1 ? 0 : 1) : Math.floor((pointed - start) / slot);
    pointAt(start + Math.min(Math.max(at + by, 0), slots - 1) * slot);
    const figures = [...event.target.querySelectorAll(".key li")].map((item) => item.textContent.trim());
    set(spoken, `${event.target.querySelector(".when").textContent}: ${figures.join(", ")}`);
  });
  main.addEventListener("focusout", (event) => {
    if (event.target.matches(".plots")) leave();
  });

  // ---- the page as it is now -----------------------------------------------------------------------

  main.addEventListener("fresh", (event) => {
    const plots = event.detail.querySelector(".plots");
    if (plots) ticks(plots);
  });
  main.addEventListener("shown", () => {
    const plots = find();
    if (!plots || pointed === null) return;
    // What the server wrote is in place: that is what comes back when nothing is pointed at.
    plots.dataset.when = plots.querySelector(".when").textContent;
    point();
  });
  if (find()) ticks(find());
}
