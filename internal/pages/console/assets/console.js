// The console's only hand-written script. Every page works without it: it draws charts beside their tables, moves with the keyboard, and prints.
"use strict";
(() => {
	const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

	// Draws a line where something happened in a chart, with its name beside it.
	function line(u, i, text) {
		const x = Math.round(u.valToPos(i, "x", true)), { left, width, top, height } = u.bbox, ratio = devicePixelRatio;
		u.ctx.save();
		u.ctx.strokeStyle = u.ctx.fillStyle = css("--text");
		u.ctx.lineWidth = ratio;
		u.ctx.setLineDash([4 * ratio, 3 * ratio]);
		u.ctx.beginPath();
		u.ctx.moveTo(x, top);
		u.ctx.lineTo(x, top + height);
		u.ctx.stroke();
		u.ctx.font = 11 * ratio + "px " + css("--sans");
		u.ctx.textBaseline = "top";
		u.ctx.textAlign = x > left + width / 2 ? "right" : "left";
		u.ctx.fillText(text, x + (u.ctx.textAlign === "left" ? 4 : -4) * ratio, top + 2 * ratio);
		u.ctx.restore();
	}

	// Draws the chart of a table: one row per step.
	function draw(box) {
		const table = document.getElementById(box.dataset.chart);
		if (!table || !window.uPlot) return;
		const rows = [...table.tBodies[0].rows];
		const days = rows.map((r) => r.dataset.day), shorts = rows.map((r) => r.dataset.short), marks = rows.map((r) => r.dataset.mark);
		if (!days.length) return;
		const data = [days.map((_, i) => i), rows.map((r) => Number(r.dataset.used) || null), rows.map((r) => Number(r.dataset.over) || null)];
		const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
		const axis = { stroke: css("--dim"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line") }, font: "12px " + css("--sans") };
		const bars = uPlot.paths.bars({ size: [0.7, 60] });
		const number = (_, v) => (v == null ? "" : whole.format(v) + " " + box.dataset.unit);
		box.replaceChildren();
		new uPlot({
			width: box.clientWidth, height: 220,
			scales: { x: { time: false, range: (_, lo, hi) => [lo - 0.6, hi + 0.6] }, y: { range: (_, lo, hi) => [0, Math.max(1, hi) * (marks.some(Boolean) ? 1.2 : 1.05)] } },
			axes: [
				{ ...axis, grid: { show: false }, incrs: [1, 2, 5, 7, 14], values: (_, at) => at.map((i) => shorts[i] || "") },
				{ ...axis, size: 80, values: (_, at) => at.map((v) => whole.format(v)) },
			],
			hooks: { draw: [(u) => marks.forEach((text, i) => text && line(u, i, text))] },
			series: [
				{ label: "at", value: (_, v) => (v == null ? "" : days[v] + (marks[v] ? " (" + marks[v] + ")" : "")) },
				{ label: "used", fill: css("--used"), stroke: css("--used"), paths: bars, points: { show: false }, value: number },
				{ label: "overage", fill: css("--over"), stroke: css("--over"), paths: bars, points: { show: false }, value: number },
			],
		}, data, box);
	}
	const drawAll = () => document.querySelectorAll("[data-chart]").forEach(draw);
	drawAll();
	let resized;
	addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(drawAll, 150); });
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);

	// Details that a person opened or closed stay so when htmx exchanges what they are in, and a table stays where it was scrolled to.
	let open = null, tops = [];
	document.body.addEventListener("htmx:beforeSwap", (e) => {
		open = [...e.detail.target.querySelectorAll("details")].map((d) => d.open);
		tops = [...e.detail.target.querySelectorAll(".tall")].map((d) => d.scrollTop);
	});
	document.body.addEventListener("htmx:afterSwap", (e) => {
		const now = [...e.detail.target.querySelectorAll("details")];
		if (open && open.length === now.length) now.forEach((d, i) => { d.open = open[i]; });
		e.detail.target.querySelectorAll(".tall").forEach((d, i) => { d.scrollTop = tops[i] || 0; });
		open = null;
	});

	addEventListener("click", (e) => { if (e.target.closest("[data-print]")) print(); });

	// Shows what the service sends, while the tab is seen. Without room for one more stream it asks every 15 seconds instead.
	function follow(box) {
		const says = document.querySelector("[data-live-state]"), pause = document.querySelector("[data-live-pause]");
		let source = null, timer = 0, paused = false;
		const stop = () => { if (source) source.close(); source = null; clearTimeout(timer); };
		const show = (html) => {
			const had = box.contains(document.activeElement) && document.activeElement.getAttribute("href");
			box.innerHTML = html; // made and escaped by the service
			if (had) [...box.querySelectorAll("a")].find((a) => a.getAttribute("href") === had)?.focus({ preventScroll: true });
		};
		const poll = () => { htmx.ajax("GET", box.dataset.poll, { target: box, swap: "innerHTML" }); timer = setTimeout(poll, 15000); };
		const start = () => {
			stop();
			if (paused || document.hidden) return;
			source = new EventSource(box.dataset.stream);
			source.onopen = () => { says.textContent = "refreshes by itself"; };
			source.onerror = () => {
				says.textContent = "not connected; these are older figures";
				if (source && source.readyState === EventSource.CLOSED) { stop(); timer = setTimeout(start, 15000); }
			};
			source.addEventListener("now", (e) => { show(e.data); box.dataset.live = "yes"; });
			source.addEventListener("ended", () => { stop(); location.reload(); });
			source.addEventListener("full", () => { stop(); says.textContent = "refreshes every 15 seconds"; poll(); });
		};
		pause.hidden = false;
		pause.addEventListener("click", () => {
			paused = !paused;
			pause.setAttribute("aria-pressed", String(paused));
			says.textContent = paused ? "paused" : "";
			start();
		});
		document.addEventListener("visibilitychange", start);
		addEventListener("pagehide", stop);
		addEventListener("pageshow", (e) => { if (e.persisted) start(); });
		start();
	}
	const live = document.querySelector("[data-stream]");
	if (live && window.EventSource) follow(live);

	// A form that must not be sent twice is sent once from a page.
	addEventListener("submit", (e) => {
		if (!("once" in e.target.dataset)) return;
		if (e.target.dataset.once === "sent") e.preventDefault();
		e.target.dataset.once = "sent";
	});
	addEventListener("pageshow", () => document.querySelectorAll("[data-once]").forEach((f) => { f.dataset.once = ""; }));

	// "/" goes to the search, j and k or the arrows to the next and previous row of a list, n to its next page.
	addEventListener("keydown", (e) => {
		if (e.ctrlKey || e.metaKey || e.altKey) return;
		const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName);
		if (e.key === "Escape" && typing) return e.target.blur();
		if (typing) return;
		if (e.key === "/") {
			const field = document.querySelector('[data-key="/"]');
			if (field) { e.preventDefault(); field.focus(); field.select(); }
		} else if (/^([jk]|Arrow(Down|Up))$/.test(e.key)) {
			const links = [...document.querySelectorAll("[data-rows] th a")];
			const at = links.indexOf(document.activeElement), down = e.key === "j" || e.key === "ArrowDown";
			if (at < 0 && e.key.length > 1) return; // until a row is chosen, arrows scroll
			const next = links[at < 0 ? 0 : at + (down ? 1 : -1)];
			if (next) { e.preventDefault(); next.focus(); }
		} else if (e.key === "n") {
			const next = document.querySelector('a[rel="next"]');
			if (next) { e.preventDefault(); next.click(); }
		}
	});
})();
