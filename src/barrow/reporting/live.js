// Keeps the page of a run that goes on up to date: asks for its new part from time to time.
(() => {
  "use strict";
  const page = document.documentElement;
  const age = document.getElementById("age");
  let made = Date.now();
  let isOver = false;

  const say = () => {
    const seconds = Math.round((Date.now() - made) / 1000);
    if (isOver) age.textContent = "the run has ended";
    else age.textContent = seconds < 2 ? "up to date" : `as of ${seconds} s ago`;
  };

  const replace = async (text) => {
    const coming = new DOMParser().parseFromString(text, "text/html");
    const main = coming.querySelector("main");
    const data = coming.getElementById("figures");
    if (main === null || data === null) return;
    const old = document.querySelector("main");
    const opened = [...old.querySelectorAll("details")].map((part) => part.open);
    [...main.querySelectorAll("details")].forEach((part, i) => (part.open = opened[i] ?? false));
    main.classList.add("coming");
    old.after(main);
    // Drawn out of sight first, so that nothing flickers and the reader stays where he is.
    await window.drawAnew(main, JSON.parse(data.textContent));
    const [x, y] = [window.scrollX, window.scrollY];
    old.remove();
    main.classList.remove("coming");
    window.scrollTo(x, y);
    page.dataset.refresh = coming.documentElement.dataset.refresh;
    page.dataset.updates = Number(page.dataset.updates ?? 0) + 1;
    isOver = main.querySelector(".pill.running") === null;
    made = Date.now();
  };

  const refresh = async () => {
    try {
      const answer = await fetch("?part");
      if (answer.ok) await replace(await answer.text());
    } catch {
      // The scheduler is gone, and its dashboard with it: what is shown stays.
      isOver = true;
    }
    say();
  };

  let waiting;
  let refreshing = Promise.resolve();
  const refreshWhenSeen = () => {
    clearTimeout(waiting);
    if (isOver || document.visibilityState !== "visible") return;
    refreshing = refreshing.then(refresh).then(wait);
  };
  const wait = () => {
    clearTimeout(waiting);
    waiting = setTimeout(refreshWhenSeen, 1000 * Number(page.dataset.refresh));
  };

  isOver = document.querySelector(".pill.running") === null;
  say();
  setInterval(say, 1000);
  document.addEventListener("visibilitychange", refreshWhenSeen);
  wait();
})();
