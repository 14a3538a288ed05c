// The customer's page works without this script. It keeps the bars new while somebody looks, and prints.
"use strict";
(() => {
	const every = 30000;
	const section = document.querySelector("[data-again]");
	let busy = false;
	async function again() {
		if (busy || !section || document.visibilityState === "hidden" || section.contains(document.activeElement)) return;
		busy = true;
		try {
			const answer = await fetch(section.dataset.again, { credentials: "same-origin", headers: { Accept: "text/html" }, signal: AbortSignal.timeout(10000) });
			if (answer.status === 410) { location.reload(); return; } // says that the link has ended
			if (!answer.ok) return; // the next time may do
			const open = [...section.querySelectorAll("details")].map((d) => d.open);
			section.innerHTML = await answer.text();
			[...section.querySelectorAll("details")].forEach((d, i) => { d.open = Boolean(open[i]); });
		} catch { /* not reached: the bars stay as they are, with their time beside them */ } finally { busy = false; }
	}
	if (section) {
		setInterval(again, every);
		document.addEventListener("visibilitychange", again);
	}
	addEventListener("click", (e) => { if (e.target.closest("[data-print]")) print(); });
})();
