// The search of the theme runs in a worker. Browsers refuse a worker to a page that is opened by file://, so there this
// class runs the script of the worker in a hidden frame of the page instead.
(() => {
  if (location.protocol !== "file:") return;

  const prelude = `
    window.postMessage = data => window.parentWorker.dispatchEvent(new MessageEvent("message", { data }));
    window.importScripts = (...addresses) => Promise.all(addresses.map(address => new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.onload = resolve;
      script.onerror = reject;
      script.src = address;
      document.body.appendChild(script);
    })));`;

  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.loaded = new Promise((resolve, reject) => {
        const frame = document.createElement("iframe");
        frame.hidden = true;
        document.body.appendChild(frame);
        this.frame = frame;
        const inner = frame.contentDocument;
        frame.contentWindow.parentWorker = this;
        const add = script => inner.body.appendChild(script);
        const before = inner.createElement("script");
        before.textContent = prelude;
        add(before);
        const script = inner.createElement("script");
        script.onload = resolve;
        script.onerror = reject;
        script.src = address;
        add(script);
      });
    }

    postMessage(data) {
      this.loaded.then(() => {
        const { contentWindow } = this.frame;
        contentWindow.dispatchEvent(new contentWindow.MessageEvent("message", { data }));
      });
    }

    terminate() {
      this.frame.remove();
    }
  };
})();
