// Browsers start no worker from a file; a frame of its own does the same work. So the site can be
// searched without a server.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inner = frame.contentWindow;
      const waiting = [];
      this.postMessage = (data) => waiting.push(data);
      const answer = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      inner.postMessage = answer;
      const script = inner.document.createElement("script");
      script.src = address;
      script.onload = () => {
        this.postMessage = (data) =>
          setTimeout(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
        waiting.forEach((data) => this.postMessage(data));
      };
      inner.document.body.appendChild(script);
      this.terminate = () => frame.remove();
    }
  };
}
