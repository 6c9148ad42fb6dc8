// Runs before anything is drawn: scripts are there, and which of light and dark was chosen.
"use strict";
document.documentElement.classList.add("js");
try {
    const chosen = localStorage.getItem("berth-theme");
    if (chosen === "light" || chosen === "dark")
        document.documentElement.dataset.theme = chosen;
} catch (e) {
    // Storage may be forbidden; then the system's choice stands.
}
