/** Pages of single outputs have the theme of the page around them, and no button of their own. */
function lendTheme(frame) {
  const follow = () => {
    const inner = frame.contentDocument;
    const button = inner.querySelector("button.theme");
    if (button === null) return;
    button.hidden = true;
    inner.documentElement.dataset.theme = pageIsDark() ? "dark" : "light";
    inner.dispatchEvent(new Event("themechange"));
  };
  frame.addEventListener("load", follow);
  document.addEventListener("themechange", follow);
  follow();
}

/** Whoever follows a link to an output sees it. */
function openLinked() {
  const linked = document.getElementById(location.hash.slice(1));
  if (linked !== null) linked.open = true;
}

document.querySelectorAll(".output iframe").forEach(lendTheme);
addEventListener("hashchange", openLinked);
openLinked();
