// Gives the GIFs of a page, or the formats in data-sources, the addresses that negotiate, and a button that pauses each animation.
// The images stay the elements that they are. Where anything fails, they show the page's own files. Attributes and limits: docs/pages.md.
(() => {
  // An image named currentScript, as in a visitor's comment, would replace document.currentScript, and modules would load from its server.
  const script = Reflect.get(Document.prototype, "currentScript", document);
  const settings = script.dataset;
  // Sites that replace the body of a page run the scripts in it again.
  if (document[script.outerHTML]) return;
  document[script.outerHTML] = 1;
  const root = new URL(".", script.src).href;
  const resolver = document.createElement("a");
  /** Resolves a link as the page does. */
  const resolve = (link) => ((resolver.href = link), resolver.href);
  const origin = resolve(settings.origin || "/");
  const isSource = RegExp(`^https?:(?!.*%7B)[^?]*\\.(${(settings.sources || "gif").match(/\w+/g).join("|").replace("apng", "a?png")})([?]|$)`, "i");
  /** The names of the actions on one image and on all, and that of the region with the buttons. */
  const words = (settings.words || "Pause animation|Play animation|Pause all|Play all|Animations").split("|");
  /** The attributes with addresses; those of lazy loaders begin with data-. */
  const names = /^(data-(lazy-?)?)?(src(set)?|original(-set)?|lazy|load|echo|gif)$/;
  const reduced = matchMedia("(prefers-reduced-motion:reduce)");
  const states = new WeakMap();
  /** The states of the images in the document. */
  const shown = new Set();
  let frozen;

  // Addresses

  /** The file that a link shows, if it is one of the formats. `own` has the options of a link to this server. */
  function parse(link) {
    let [source, fragment = ""] = resolve(link).split(/(?=#)/);
    let own;
    if (source.startsWith(root)) {
      const rest = source.slice(root.length);
      const [, format, options, absolute] = /^(\w+)(|,[^/]*)\/(https?:.*)/.exec(rest) || [];
      // A script may have replaced the extension of a source.
      if (format === "auto") return { source: absolute, own: options, fragment };
      if (format || rest.startsWith("object/")) return false;
      if (rest.startsWith(settings.mount + "/")) {
        [source, own] = (origin + rest.slice(settings.mount.length + 1)).split(/\.auto(?:[?]|$)/);
        if (own !== undefined && !isSource.test(source)) source += ".gif";
        own ||= "";
      }
    }
    return isSource.test(source) && { source, own, fragment };
  }

  /** The link to the same source in a format; "" is the source itself. */
  function convertLink(link, format) {
    const { source, own, fragment } = parse(link);
    if (!source || format === "page" || (own === undefined ? !format : format === "auto")) return link;
    if (!format) return source + fragment;
    // Stills have no speed, start, bg, end, expires, loops, tune, codec, chroma, max_bytes and fps.
    const options = (own ?? settings.options ?? "").split(/[,&]/)
      .filter((option) => option && !(format === "webp" ? /^([sbeltcm]|fps)/ : /^frame/).test(option));
    return root + (settings.mount && source.startsWith(origin) && !source.includes("?")
      ? `${settings.mount}/${source.slice(origin.length)}.${format}?${options.join("&")}`.replace(/\?$/, "")
      : `${[format, ...options]}/${source}`) + fragment;
  }

  /** A value of `src` or `srcset` with other links. */
  const replaceLinks = (name, value, change) =>
    /set$/.test(name) ? value.replace(/([^\s,]\S*[^\s,])(\s[^,]*|)/g, (_, link, rest) => change(link) + rest) : change(value);

  // Images

  // Browsers regard an image that is not loaded yet, because it is lazy, as complete.
  const loaded = (img) => img.complete && img.naturalWidth;

  /** Notes whether an image is hidden from visitors, as in a closed menu, and returns whether this is new. */
  const look = (state) =>
    state.hidden !== (state.hidden = state.img.checkVisibility?.({ checkVisibilityCSS: true }) === false || !state.img.getBoundingClientRect().width);
  const uncover = (state) => state.cover && (state.cover = state.img.style.content = "");

  /** Shows the page's own addresses ("page"), the sources (""), or those of a format. */
  function show(state, kind) {
    const { img } = state;
    // A <source> of another format may be shown.
    if (kind === "webp" && loaded(img) && !(state.kind === kind && img.currentSrc.startsWith(root))) {
      if (state.cover && img.style.content) return;
      // The image keeps its address, so that the animation goes on where it was. Chromium before 113 needs the prefix.
      const cover = (state.cover = new Image());
      cover.onload = () => {
        if (state.cover === cover) img.style.content = `-webkit-image-set(url("${cover.src}") ${cover.naturalWidth / img.naturalWidth}x)`;
      };
      cover.onerror = () => {
        state.moves = false;
        update(state);
      };
      cover.src = state.still;
      return;
    }
    uncover(state);
    if (state.kind === kind) return;
    // The page has seen the image arrive already.
    state.quiet = loaded(img);
    state.kind = kind;
    for (const place of state.places) {
      const { node, name, original } = place;
      place.value = (kind === "webp" && img.dataset.gifreelStill && state.still) || replaceLinks(name, original, (link) => convertLink(link, kind));
      // Chromium shows a lazy image that gets another address only when it is whole, unless it has none in between.
      if (!img.naturalWidth) node.removeAttribute(name);
      node.setAttribute(name, place.value);
    }
  }

  function update(state) {
    const { img } = state;
    // A picture with a <source> for less motion needs no other still.
    const moves = !(reduced.matches && img.closest("picture")?.querySelector("[media*=motion]")) && state.moves;
    // The image has a newer state, or its own file is loading and the server has not answered yet.
    if (!shown.has(state) || (moves === undefined && state.plays === state.home && state.kind === state.home)) return;
    const paused = moves !== false && (state.paused ?? frozen);
    show(state, paused || (moves && state.film) ? "webp" : state.plays);
    moves ? state.film?.(paused) : state.film?.();
    if (moves && !state.hidden) {
      if (!state.button) addButton(state);
      state.button.classList.toggle("play", paused);
      state.button.ariaLabel = words[paused ? 1 : 0] + (img.alt && ": " + img.alt);
    } else removeButton(state);
  }

  /** The state of an image with its links; undefined if the image stays. */
  function read(img) {
    // An editor would save the changed addresses.
    if (!img.matches(settings.selector || "img") || img.matches("[data-gifreel=off],:read-write *")) return;
    const places = [];
    // All are resolved now, because scripts may change the address of the page (history.pushState).
    const links = [];
    for (const node of [img, ...(img.closest("picture")?.querySelectorAll("source") || [])]) {
      for (const { name, value } of node.attributes) {
        if (!names.test(name)) continue;
        const isLater = name[0] === "d";
        const changed = replaceLinks(name, value, (link) => {
          if (!isLater && parse(link)) links.push(resolver.href);
          return convertLink(link, isLater ? "auto" : "webp");
        });
        if (changed === value) continue;
        isLater ? node.setAttribute(name, changed) : places.push({ node, name, original: replaceLinks(name, value, resolve), value });
      }
    }
    // Images of one pixel count visits.
    if (!places[0] || (parseFloat(img.getAttribute("width")) < 3 && parseFloat(img.getAttribute("height")) < 3)) return;
    // None is current while the image still shows the picture before a change by a script.
    const link = links.includes(img.currentSrc) ? img.currentSrc : links[0];
    if (link === img.currentSrc && img.naturalWidth && img.naturalWidth < 3) return;
    return {
      img, places, link, still: resolve(img.dataset.gifreelStill || convertLink(link, "webp")),
      home: parse(link).own === undefined ? "page" : "", kind: "page", plays: "page"
    };
  }

  function consider(isLate, img, isFar) {
    const old = states.get(img);
    // The image may have moved, or have a new description.
    if (old?.places.every(({ node, name, value }) => node.isConnected && node.getAttribute(name) === value)) return enter(old);
    if (old) leave(old);
    const state = read(img);
    states.set(img, state);
    if (!state) return;
    state.paused = old?.paused;
    // A script may insert a copy of a paused image.
    if (img.style.content.includes(root)) {
      state.cover = new Image();
      state.paused = true;
    }
    const isLazy = img.loading === "lazy";
    // Whether nothing of the file has been requested. Browsers load lazy images within 2500 pixels; Chromium regards others as complete.
    // Another script of the page may change each address back: the second time, the server is asked first.
    const isFresh = !old && !loaded(img) && (isLate || (isLazy && (img.complete || isFar)));
    if (isFresh && state.home && /\.(gif|apng)\b/i.test(state.link)) state.plays = "auto";
    // An image of `gifreel rewrite` may have failed already.
    if (!isLate && !isLazy && img.complete && !img.naturalWidth) state.plays = state.home;
    enter(state);
    if (!isFresh || !isLazy) ask(state);
  }

  /** Hides events that this server's addresses cause: the page does not know these addresses. */
  function hide(event) {
    const state = states.get(event.target);
    if (!state) return;
    const failed = event.type === "error";
    // The image may have got its size only now.
    look(state);
    if (failed ? state.kind !== state.home : state.quiet) event.stopImmediatePropagation();
    if (failed && state.kind === "webp") state.moves = false;
    if (failed) state.plays = state.home;
    update(state);
  }

  function enter(state) {
    shown.add(state);
    views.observe(state.img);
    update(state);
  }

  function leave(state) {
    shown.delete(state);
    views.unobserve(state.img);
    removeButton(state);
    uncover(state);
    state.film?.();
  }

  // The sources as the server knows them

  let waiting = [];
  function ask(state) {
    if (state.asked) return;
    state.asked = true;
    // Servers and proxies bound the length of an address, mostly at 8 KB.
    if (waiting.push(state) < 2) setTimeout(() => {
      while (waiting[0]) receive(waiting.splice(0, 7), 0);
    });
  }
  async function receive(part, tries) {
    const restore = () => {
      for (const state of part) {
        if (!loaded(state.img)) state.plays = state.home;
        update(state);
      }
    };
    const limit = setTimeout(restore, 4000);
    try {
      // The server may accept a source only by its path below a mount.
      const query = part.map(({ link }) => "&url=" + encodeURIComponent(convertLink(link, "auto").replace(root, "/").split("#")[0])).join("");
      // A module, because each policy that allows this script allows it.
      const answers = "signed" in settings ? "" : (await import(root + "facts.js?try=" + tries + query)).default;
      part = part.filter((state, index) => decide(state, answers[index]) && shown.has(state));
      if (part[0] && tries < 6) setTimeout(receive, 1000 << tries, part, tries + 1);
    } catch {
      restore();
    }
    clearTimeout(limit);
  }
  /** Follows an answer of four bits: the image is known, needs a button, has a better file, is better shown as a video. */
  function decide(state, answer) {
    // What the server does not know yet is an animation until the server has seen it.
    state.moves = !(answer & 1) || !!(answer & 10);
    if (!loaded(state.img)) {
      if (answer & 4 && state.home) state.plays = "auto";
      if (answer & 8) import(root + "video.js").then((module) => module.play(state, convertLink(state.link, "mp4"), update));
    }
    update(state);
    return !(answer & 1);
  }

  // Buttons, outside of the body, out of reach of the page's rules and scripts

  const host = document.createElement("gifreel-controls");
  const buttons = host.attachShadow({ mode: "open" });
  const all = document.createElement("button");
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`:host{all:initial!important;position:fixed!important;inset:0 auto auto 0!important;z-index:999999999!important}
button{all:initial;position:absolute;inset:0 auto auto 0;width:30px;height:30px;border:1px solid #fff;border-radius:8px;background:#000c;opacity:0;pointer-events:none;forced-color-adjust:none}
.on,button:focus-visible{opacity:1;pointer-events:auto}
button:focus-visible{outline:3px solid #fff;box-shadow:0 0 0 6px #06f}
button::before{content:"";position:absolute;inset:7px;border:solid #fff;border-width:0 4px}
.play::before{border-width:7px 0 7px 14px;border-color:#0000 #fff}
.all{position:fixed;inset:auto auto 8px 8px;width:auto;height:auto;padding:8px;font:16px system-ui;color:#fff}
.all::before{content:none}
@media print{button{display:none}}`);
  buttons.adoptedStyleSheets = [sheet];
  buttons.append(all);
  all.className = "all";
  host.role = "region";
  host.ariaLabel = words[4];

  function addButton(state) {
    const button = (state.button = document.createElement("button"));
    button.owner = state;
    // In the order of the images.
    let next = all;
    while (next.previousSibling?.owner.img.compareDocumentPosition(state.img) & 2) next = next.previousSibling;
    next.before(button);
  }
  function removeButton(state) {
    state.button = state.button?.remove();
  }

  // The page does not know the buttons: it would treat a click as one outside of its dialog, and a key as its own shortcut.
  host.onclick = host.onmousedown = host.onmouseup = host.onpointerdown = host.onkeydown = host.onkeyup = (event) => {
    event.key === (settings.key ?? "Escape") || event.stopPropagation();
  };
  // The host does not receive the event of a focus that moves from one button to the next.
  buttons.addEventListener("click", (event) => {
    const state = event.target.owner;
    if (!state) return toggleAll(!frozen);
    state.paused = !(state.paused ?? frozen);
    update(state);
  });
  buttons.addEventListener("focusin", (event) => {
    const state = event.target.owner;
    if (!state) return;
    state.img.scrollIntoView({ block: "nearest" });
    // The still picture is there when the button is pressed.
    new Image().src = state.still;
    place();
  });

  /** Without a value, follows the visitor's wish for less motion or fewer bytes. */
  function toggleAll(value = reduced.matches || !!navigator.connection?.saveData) {
    frozen = value;
    all.textContent = words[frozen ? 3 : 2];
    for (const state of shown) {
      state.paused = undefined;
      update(state);
    }
  }

  let pointer = {};

  /** Lays each button on the lower left corner of its image, or beside a small one. Shows those near the pointer, which `event` moves. */
  function place(event = pointer) {
    const { x, y } = (pointer = event);
    for (const state of shown) {
      const { img, inView, paused } = state;
      // A script of the page may have replaced the style of the image, or that of an element around it.
      if (look(state) || (inView && state.cover?.complete)) update(state);
      const { button } = state;
      if (!button) continue;
      // A script may have replaced the whole document.
      host.isConnected || document.documentElement.append(host);
      if (!inView) continue;
      const { width, height, top, bottom, left, right } = img.getBoundingClientRect();
      const beside = Math.min(width, height) < 64 ? right - 2 : left + 8;
      const down = Math.max(top, Math.min(bottom, innerHeight) - 40);
      // Unlike `left` and `top`, it leaves the layout as it is. Chromium before 104 has no `translate`.
      button.style.transform = "translate(" + Math.max(0, Math.min(beside, innerWidth - 40)) + "px," + down + "px)";
      // A point left of the button: a header, a menu or another slide there covers the image, an element of the same card does not.
      const near = document.body === img.offsetParent ? img.parentNode : img.offsetParent;
      const over = document.elementFromPoint(left + 4, down);
      button.classList.toggle("on",
        !(over && !over.shadowRoot && !over.contains(img) && (document.body === near || !near?.contains(over))) && (
          matchMedia("(hover:none)").matches || (y > top && y < bottom && x > left && x < right + 30) || (paused ?? frozen)));
    }
  }

  // The page

  const views = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const state = states.get(target);
      if (!state) continue;
      state.inView = isIntersecting;
      look(state);
      update(state);
      if (isIntersecting) ask(state);
      else state.button?.classList.remove("on");
    }
  });

  function find(tree, isLate) {
    const found = [];
    for (const node of [tree, ...(tree.querySelectorAll?.("*") || [])]) {
      // All places are read before an address changes, so that the browser computes the layout once.
      if (node.localName === "img") found.push([node, node.loading === "lazy" && node.getBoundingClientRect().top > innerHeight + 2500]);
      else if (node.shadowRoot && node !== host) watch(node.shadowRoot);
    }
    for (const [img, isFar] of found) consider(isLate, img, isFar);
  }
  const changes = new MutationObserver((records) => {
    for (const { type, target, addedNodes } of records) {
      // The image of a <source> is beside it.
      if (type === "attributes") find(target.closest("picture") ?? target, true);
      for (const node of addedNodes) find(node, true);
    }
    for (const state of shown) state.img.isConnected || leave(state);
  });
  function watch(tree) {
    tree.addEventListener("load", hide, true);
    tree.addEventListener("error", hide, true);
    changes.observe(tree, { childList: true, subtree: true, attributeFilter: ["alt", "src", "srcset"] });
    find(tree, tree !== document);
  }
  const { attachShadow } = Element.prototype;
  Element.prototype.attachShadow = function (init) {
    const tree = attachShadow.call(this, init);
    if (tree.mode === "open") watch(tree);
    return tree;
  };
  toggleAll();
  watch(document);
  reduced.onchange = () => toggleAll();
  addEventListener("mousemove", place);
  addEventListener("scroll", () => place(), true);
  // Other movements of an image fire no event.
  setInterval(place, 200);
  addEventListener("keydown", (event) => event.key === (settings.key ?? "Escape") && !event.defaultPrevented && shown.size && toggleAll(true));
})();
