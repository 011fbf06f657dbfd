"use strict";

/** The button that turns a light page dark and back. */
function connectTheme(button) {
  const root = document.documentElement;
  const label = () => {
    button.textContent = pageIsDark() ? "Light theme" : "Dark theme";
  };
  const changed = () => {
    label();
    document.dispatchEvent(new Event("themechange"));
  };
  button.hidden = false;
  label();
  button.addEventListener("click", () => {
    root.dataset.theme = pageIsDark() ? "light" : "dark";
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}

/** A button beside a text that copies it. */
function connectCopy(button) {
  const source = document.getElementById(button.dataset.copies);
  const label = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.textContent = (await copied(source)) ? "Copied" : "Selected: press Ctrl+C";
    setTimeout(() => {
      button.textContent = label;
    }, 2000);
  });
}

/** Copy a text, or select it where a page opened from a file may not copy. */
async function copied(source) {
  try {
    await navigator.clipboard.writeText(source.textContent.trim());
    return true;
  } catch {
    getSelection().selectAllChildren(source);
    return false;
  }
}

document.querySelectorAll("button.theme").forEach(connectTheme);
document.querySelectorAll("button[data-copies]").forEach(connectCopy);
