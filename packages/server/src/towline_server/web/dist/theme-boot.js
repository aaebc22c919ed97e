// Runs before the first paint, so that a dark page never flashes white. A file of its own because
// the page's policy allows no inline script. It also keeps the browser's offer to install the page,
// which may come before anybody listens.
(() => {
  let look = null;
  let size = null;
  try {
    look = localStorage.getItem("towline.look");
    size = localStorage.getItem("towline.text_size");
  } catch {
    // A browser that keeps nothing follows the system.
  }
  const dark =
    look === "dark" || (look !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  if (size >= 90 && size <= 130) document.documentElement.style.fontSize = `${Number(size)}%`;
})();
addEventListener("beforeinstallprompt", (event) => {
  event.preventDefault();
  globalThis.installOffer = event;
});
