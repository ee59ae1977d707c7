// Pages that are opened as files can't start workers, which the search needs, so a hidden frame replaces the worker.
// MkDocs' offline plugin looks for a file of this name and would otherwise load its own from a network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html>";
      this.frame.addEventListener("load", () => this.start(url), { once: true });
      document.body.append(this.frame);
    }

    start(url) {
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = url;
      script.addEventListener("load", () => {
        const waiting = this.waiting;
        this.waiting = undefined;
        waiting.forEach((data) => this.postMessage(data));
      });
      inside.document.body.append(script);
    }

    postMessage(data) {
      if (this.waiting) {
        this.waiting.push(data);
      } else {
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
      }
    }

    terminate() {
      this.frame.remove();
    }
  };
}
