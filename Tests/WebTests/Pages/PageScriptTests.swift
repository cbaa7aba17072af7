import Fetch
import Foundation
import Renditions
import SystemIO
import TestSupport
import Testing

@testable import Web

@Suite("The server has what gifreel.js requests", .enabled(if: ScriptHost.node != nil)) struct PageScriptTests {
    /// The rendition and the source that an address names.
    private func parse(_ address: String) throws -> (rendition: Rendition, source: String) {
        let target = address.replacing(ScriptHost.server, with: "/")
        let route = try RouteParser(mounts: [:]).parse(target).route
        guard case .rendition(let rendition, let source) = route else { throw Problem.notFound(address) }
        return (rendition, source.canonical)
    }

    /// A value of an option, with the options without which it has no effect.
    private func text(_ option: RenditionOption) -> String {
        let value: String
        switch option.domain(of: .mp4) {
        case .whole(let range): value = "\(range.upperBound)"
        case .decimal(let range): value = "\(Int(range.upperBound))"
        case .words(let words): value = words.last ?? ""
        case .wholeOr(_, let word): value = word
        case .wordsOrPoint(let words): value = words.last ?? ""
        case .colour: value = "000000"
        }
        let others =
            switch option {
            case .fit: ",height=20,width=20"
            case .gravity: ",fit=cover,height=20,width=20"
            default: ""
            }
        return "\(option.rawValue)=\(value)" + others
    }

    @Test func eachOptionIsSentWhereItHasAnEffect() throws {
        let options = RenditionOption.allCases.filter { $0.applies(to: .mp4) || $0.applies(to: .webp) }
        #expect(options.contains(.tune) && options.contains(.codec) && options.contains(.frame) && options.contains(.bg))
        let pages = options.map { ScriptHost.Page(settings: ["options": text($0)]) }
        for (option, addresses) in zip(options, try ScriptHost.addresses(pages)) {
            for (address, format) in zip(addresses, [Rendition.Format.mp4, .webp]) {
                let (rendition, source) = try parse(address)
                #expect(rendition.format == format && source == "https://site.test/a.gif", "\(address)")
                #expect(address.contains("\(option.rawValue)=") == option.applies(to: format), "\(address)")
            }
        }
    }

    @Test(arguments: [
        ([:], "a.gif", "auto/https://site.test/a.gif", "webp/https://site.test/a.gif"),
        ([:], "a.gif?v=1#x", "auto/https://site.test/a.gif?v=1#x", "webp/https://site.test/a.gif?v=1#x"),
        (["mount": "media"], "a.gif", "media/a.gif.auto", "media/a.gif.webp"),
        (["mount": "media"], "A.GIF", "media/A.GIF.auto", "media/A.GIF.webp"),
        (["mount": "media"], "a.gif?v=1", "auto/https://site.test/a.gif?v=1", "webp/https://site.test/a.gif?v=1"),
        (
            ["mount": "media", "options": "width=20,tune=film"], "a.gif", "media/a.gif.auto?width=20&tune=film",
            "media/a.gif.webp?width=20"
        ),
        (["mount": "media", "sources": "apng"], "a.apng", "media/a.apng.auto", "media/a.apng.webp"),
        (
            [:], "https://gifs.test/auto,width=20/https://site.test/a.gif", "auto,width=20/https://site.test/a.gif",
            "webp,width=20/https://site.test/a.gif"
        ),
        (["mount": "media"], "https://gifs.test/media/a.auto", "media/a.auto", "media/a.gif.webp"),
        (["mount": "media"], "https://gifs.test/media/a.gif.auto", "media/a.gif.auto", "media/a.gif.webp"),
        (
            ["mount": "media", "sources": "gif,webp"], "https://gifs.test/media/a.webp.auto", "media/a.webp.auto",
            "media/a.webp.webp"
        ),
        (
            ["mount": "media"], "https://gifs.test/media/a.auto?tune=film&width=20", "media/a.auto?tune=film&width=20",
            "media/a.gif.webp?width=20"
        ),
    ]) func anAddressHasTheFormOfItsSource(_ settings: [String: String], _ link: String, _ automatic: String, _ still: String)
        throws
    {
        let page = ScriptHost.Page(settings: settings, link: link)
        #expect(try ScriptHost.addresses([page]) == [[automatic, still].map { ScriptHost.server + $0 }])
    }

    @Test(arguments: [
        ([:], "a.gif#x", "auto/https://site.test/a.gif"),
        (["mount": "media", "options": "width=20,fps=9"], "a.gif", "media/a.gif.auto?width=20&fps=9"),
        (["options": "width=20,frame=1"], "a.gif", "auto,width=20/https://site.test/a.gif"),
        (["mount": "media"], "https://gifs.test/media/a.gif#x", "media/a.gif"),
        ([:], "https://gifs.test/auto,width=20/https://site.test/a.gif", "auto,width=20/https://site.test/a.gif"),
    ]) func theServerIsAskedByThePathWithAllOptions(_ settings: [String: String], _ link: String, _ path: String) throws {
        let page = ScriptHost.Page(settings: settings, link: link, loading: "eager")
        let expected = "\(ScriptHost.server)facts.js?try=0&url=\(PercentEncoding.encode("/" + path))"
        #expect(try ScriptHost.visits([page])[0][0].asked == expected)
    }

    @Test(arguments: [("1", "1", true), ("1px", " 2.0px", true), ("0", "0", true), ("1px", "30", false), ("", "1", false)])
    func anImageOfOnePixelStays(_ width: String, _ height: String, _ stays: Bool) throws {
        let page = ScriptHost.Page(settings: [:], attributes: ["width": width, "height": height])
        #expect(try ScriptHost.addresses([page])[0].allSatisfy { ($0 == "a.gif") == stays })
    }

    /// Browsers give the width of the picture before until the next one has arrived.
    @Test(arguments: [("data:image/gif,", true), ("https://site.test/blank.gif", true), ("https://site.test/a.gif", false)])
    func anImageThatShowsItsPlaceholderStillChanges(_ shown: String, _ changes: Bool) throws {
        let page = ScriptHost.Page(settings: [:], pixel: shown)
        #expect(try ScriptHost.addresses([page])[0].allSatisfy { ($0 != "a.gif") == changes })
    }

    @Test func aPageMayRunTheScriptTwice() throws {
        let visits = try ScriptHost.visits([ScriptHost.Page(settings: [:]), ScriptHost.Page(settings: [:], runs: 2)])
        #expect(visits[0][0].listeners > 0 && visits[0][0].listeners == visits[1][0].listeners)
    }

    /// Sanitizers keep the names of images in visitors' comments, and named images become properties of the document.
    @Test func anImageNamedLikeAPropertyOfTheDocumentDoesNotStandForTheScript() throws {
        let plain = try ScriptHost.visits([ScriptHost.Page(settings: [:], loading: "eager")])[0]
        let named = try ScriptHost.visits([ScriptHost.Page(settings: [:], loading: "eager", imageName: "currentScript")])[0]
        #expect(named.map(\.asked) == plain.map(\.asked) && named.map(\.value) == plain.map(\.value))
        #expect(named[0].asked?.hasPrefix(ScriptHost.server) == true)
    }

    @Test(arguments: [
        "https://gifs.test/mp4/https://site.test/a.gif", "https://gifs.test/object/a.gif", "a.png", "ftp://x.test/a.gif",
        // A lazy loader replaces the placeholder, and would not find it if it were encoded.
        "a_{width}x.gif",
    ])
    func otherAddressesStay(_ link: String) throws {
        #expect(try ScriptHost.addresses([ScriptHost.Page(settings: [:], link: link)]) == [[link, link]])
    }

    @Test(arguments: [SiteFile.script, .videoModule]) func aScriptIsValidAfterItIsMadeSmaller(_ file: SiteFile) throws {
        let arguments = ["--input-type=module", "--check"]
        let outcome = try ChildProcess(try #require(ScriptHost.node), arguments, input: file.bytes).finish()
        #expect(outcome.code == 0, "\(outcome.log)")
    }

    @Test func animationsPlayAfterReducedMotionEndsUnlessDataAreSaved() throws {
        let pages = [false, true].map { ScriptHost.Page(settings: [:], savesData: $0, endsReducedMotion: true) }
        let (plain, saving) = ("auto/https://site.test/a.gif", "webp/https://site.test/a.gif")
        let expected = [[plain, plain], [saving, saving]].map { $0.map { ScriptHost.server + $0 } }
        #expect(try ScriptHost.addresses(pages) == expected)
    }

    @Test func aButtonThatGetsTheFocusFromAnotherScrollsItsImageIntoView() throws {
        let visits = try ScriptHost.visits([ScriptHost.Page(settings: [:])])
        #expect(visits[0].allSatisfy { $0.scrolls })
    }

    /// Of `onmouseout="src = src.replace('.gif', '.png')"`. If `/auto` refuses the source, the page shows the source itself.
    @Test func aSourceWhoseExtensionAScriptReplacesIsKnown() throws {
        let link = "https://gifs.test/auto/https://site.test/a.png"
        let page = ScriptHost.Page(settings: [:], link: link)
        #expect(try ScriptHost.addresses([page]) == [[link, "https://gifs.test/webp/https://site.test/a.png"]])
    }

    /// `isContentEditable` is false in a part of an editor that cannot be edited, and an editor saves such parts too.
    @Test func anImageOfAnEditorStays() throws {
        let page = ScriptHost.Page(settings: [:], isEditable: true)
        #expect(try ScriptHost.addresses([page]) == [["a.gif", "a.gif"]])
    }

    @Test func aSourceOfAnotherFormatIsCoveredWithReducedMotion() throws {
        let still = "https://gifs.test/webp/https://site.test/a.gif"
        let pages = ["https://site.test/a.webp", still].map { ScriptHost.Page(settings: [:], arriving: $0) }
        #expect(try ScriptHost.visits(pages).map { $0.map(\.cover) } == [[nil, still], [nil, nil]])
    }

    /// Such as by `history.pushState`, in applications of one page and lists without end: images that are shown keep their pictures.
    @Test func aRelativeAddressKeepsItsSourceWhenThePageGetsAnotherAddress() throws {
        let address = "https://site.test/other/place"
        let pages = [("src", "a.gif"), ("srcset", "a.gif 2x")].map { name, link in
            ScriptHost.Page(settings: [:], name: name, link: link, endsReducedMotion: true, nextAddress: address)
        }
        let automatic = "https://gifs.test/auto/https://site.test/a.gif"
        let expected = [[automatic, automatic], [automatic + " 2x", automatic + " 2x"]]
        #expect(try ScriptHost.addresses(pages) == expected)
        let arrived = ScriptHost.Page(settings: ["signed": ""], arriving: "https://site.test/a.gif", nextAddress: address)
        #expect(try ScriptHost.visits([arrived])[0].map(\.cover) == [nil, "https://gifs.test/webp/https://site.test/a.gif"])
        let stated = ScriptHost.Page(
            settings: ["signed": ""], arriving: "https://site.test/a.gif", nextAddress: address, still: "a.jpg")
        #expect(try ScriptHost.visits([stated])[0].map(\.cover) == [nil, "https://site.test/a.jpg"])
    }

    /// Frameworks that compare a page with its HTML remove styles that the HTML does not have.
    @Test func anImageWhoseStyleAScriptReplacesStaysPaused() throws {
        let still = "https://gifs.test/webp/https://site.test/a.gif"
        let page = ScriptHost.Page(settings: ["signed": ""], arriving: "https://site.test/a.gif", losesStyle: true)
        #expect(try ScriptHost.visits([page])[0].map(\.cover) == [nil, still])
    }

    /// The page's own still picture stays, and no button promises to play it.
    @Test(arguments: [("(prefers-reduced-motion: reduce)", false), ("(min-width: 600px)", true)])
    func aPictureWithASourceForLessMotionStays(_ media: String, _ isPaused: Bool) throws {
        let page = ScriptHost.Page(settings: ["signed": ""], loading: "eager", media: media)
        let visits = try ScriptHost.visits([page])
        #expect(visits[0].map(\.isButtonVisible) == [true, isPaused])
        #expect(visits[0].map(\.value) == ["a.gif", isPaused ? "https://gifs.test/webp/https://site.test/a.gif" : "a.gif"])
    }

    /// Carousels copy their slides, and htmx restores a page from its HTML: the style of a paused image is part of them.
    @Test(arguments: [("", false), ("image-set(url(\"https://gifs.test/webp/https://site.test/a.gif\") 1x)", true)])
    func aCopyOfAPausedImageIsPaused(_ content: String, _ isPaused: Bool) throws {
        let page = ScriptHost.Page(settings: ["signed": ""], content: content)
        #expect(try ScriptHost.visits([page])[0].map(\.isPaused) == [isPaused, true])
    }

    @Test func thePageDoesNotReceiveWhatAButtonReceives() throws {
        let visits = try ScriptHost.visits([ScriptHost.Page(settings: [:])])
        #expect(visits[0][0].kept == ["click", "mousedown", "mouseup", "pointerdown", " ", "Enter"])
    }

    @Test func aPointerThatMovesOverAnImageShowsItsButton() throws {
        let visits = try ScriptHost.visits([ScriptHost.Page(settings: ["signed": ""])])
        #expect(visits[0].allSatisfy { $0.isButtonVisible })
    }

    @Test(arguments: [("image", true), ("card", true), ("caption", true), ("header", false)])
    func aButtonIsVisibleWhereNothingOfAnotherPartCoversItsImage(_ over: String, _ isVisible: Bool) throws {
        let visits = try ScriptHost.visits([ScriptHost.Page(settings: ["signed": ""], over: over)])
        #expect(visits[0].allSatisfy { $0.isButtonVisible == isVisible })
    }

    /// A grid with a picture and a text in the same cell needs no position.
    @Test func aButtonIsVisibleWhereATextSharesTheCellOfItsImage() throws {
        let page = ScriptHost.Page(settings: ["signed": ""], over: "caption", isPositioned: false)
        #expect(try ScriptHost.visits([page])[0].allSatisfy { $0.isButtonVisible })
    }

    /// Menus, dialogs and tabs are closed by `visibility`, <details> and `hidden=until-found` by `content-visibility`.
    @Test func anImageHasAButtonWhileItIsNotHidden() throws {
        for loading in ["lazy", "eager"] {
            let pages = [false, true].map { ScriptHost.Page(settings: ["signed": ""], loading: loading, isHidden: $0) }
            let visits = try ScriptHost.visits(pages)
            #expect(visits[0].allSatisfy { $0.hasButton && $0.isButtonVisible && $0.follows })
            #expect(visits[1].allSatisfy { !$0.hasButton && !$0.isButtonVisible && $0.follows })
        }
    }

    /// A menu that slides over the edge of the window has left the view when its style hides it.
    @Test(arguments: [false, true]) func theButtonGoesWhenTheImageIsHiddenLater(_ leavesView: Bool) throws {
        let page = ScriptHost.Page(settings: ["signed": ""], arriving: "https://site.test/a.gif", leavesView: leavesView)
        let visits = try ScriptHost.visits([page])[0]
        #expect(visits.map(\.isPaused) == [false, true] && visits.allSatisfy { $0.hasButton && $0.losesButton })
    }

    /// Scripts that compare a whole document with another one, such as morphdom and Idiomorph, remove what is beside the body.
    @Test func buttonsReturnAfterAScriptHasReplacedTheDocument() throws {
        #expect(try ScriptHost.visits([ScriptHost.Page(settings: ["signed": ""])])[0].allSatisfy { $0.returns })
    }

    @Test func aVisibleButtonFollowsItsImage() throws {
        let visits = try ScriptHost.visits([ScriptHost.Page(settings: ["signed": ""])])
        #expect(visits[0].allSatisfy { $0.follows })
    }

    /// Otherwise the browser computes the layout once per image.
    @Test func allImagesAreMeasuredBeforeOneChanges() throws {
        let visits = try ScriptHost.visits([ScriptHost.Page(settings: [:], hasTwo: true)])
        #expect(visits[0][0].order == "rrww")
    }

    /// Otherwise two scripts that replace addresses never end.
    @Test func anAddressThatAScriptChangesBackStaysUntilTheServerAnswers() throws {
        let page = ScriptHost.Page(settings: ["signed": ""], loading: "eager", next: "b.gif")
        #expect(try ScriptHost.addresses([page])[0][0] == "b.gif")
    }

    /// Before the answer arrives, reduced motion has changed the address.
    @Test func anAnswerForThePictureBeforeChangesNothing() throws {
        let page = ScriptHost.Page(settings: ["signed": ""], loading: "eager", next: "b.png")
        #expect(try ScriptHost.addresses([page]) == [["b.png", "b.png"]])
    }

    @Test func aNewDescriptionNamesTheButton() throws {
        let visits = try ScriptHost.visits([ScriptHost.Page(settings: [:])])
        #expect(visits[0][0].noticed.contains("alt"))
    }

    @Test func iconsKeepTheirShapesWithForcedColors() {
        #expect(String(decoding: SiteFile.script.bytes, as: UTF8.self).contains("forced-color-adjust:none"))
    }

    /// Such as Qt WebEngine 6.4 and 5.15. A property that a browser does not know leaves all buttons in the corner of the window.
    /// A change of `left` or `top` makes the browser compute the layout again before the next image is measured.
    @Test func aButtonIsPlacedAlsoByChromiumBefore104AndWithoutANewLayout() {
        let script = String(decoding: SiteFile.script.bytes, as: UTF8.self)
        #expect(script.contains(".style.transform=\"translate("))
        #expect(![".style.translate", ".style.left", ".style.top"].contains { script.contains($0) })
    }

    @Test func aPausedImageIsCoveredAlsoByChromiumBefore113() {
        let script = String(decoding: SiteFile.script.bytes, as: UTF8.self)
        #expect(script.split(separator: "image-set(").dropLast().allSatisfy { $0.hasSuffix("-webkit-") })
        #expect(script.contains("-webkit-image-set("))
    }

    @Test func theCandidatesOfASetChange() throws {
        let page = ScriptHost.Page(settings: [:], name: "srcset", link: "a.gif 1x, b.png 2x,/c.gif  3x")
        let server = ScriptHost.server
        let expected = ["auto", "webp"].map {
            "\(server)\($0)/https://site.test/a.gif 1x, https://site.test/b.png 2x,\(server)\($0)/https://site.test/c.gif  3x"
        }
        #expect(try ScriptHost.addresses([page]) == [expected])
    }

    @Test(arguments: [" ", "\n", "\n  ", " ,", ","]) func theLastCandidateOfASetMayEndWithoutADescriptor(_ end: String) throws {
        let page = ScriptHost.Page(settings: [:], name: "srcset", link: "\na.gif 2x,\nb.gif\(end)")
        let expected = ["auto", "webp"].map { format in
            let start = "\(ScriptHost.server)\(format)/https://site.test/"
            return "\n\(start)a.gif 2x,\n\(start)b.gif\(end)"
        }
        #expect(try ScriptHost.addresses([page]) == [expected])
    }

    /// Lazy images have placeholders of many kilobytes in their addresses. Steps in the square of their length would take minutes.
    @Test func aLongCandidateOfASetTakesNoTime() throws {
        let link = "data:image/gif;base64,\(String(repeating: "A", count: 100_000))\n"
        let page = ScriptHost.Page(settings: [:], name: "srcset", link: link)
        #expect(try ScriptHost.addresses([page]) == [[link, link]])
    }
}

/// Runs gifreel.js in Node.js, with objects in place of those of a browser.
enum ScriptHost {
    /// A page with one lazy image.
    struct Page: Encodable {
        /// The attributes `data-…` of the script's tag.
        let settings: [String: String]
        /// The attribute of the image that has the link.
        var name = "src"
        var link = "a.gif"
        var attributes: [String: String] = [:]
        var loading = "lazy"
        /// The image's `name`, under which it is a property of the document; nil for none.
        var imageName: String?
        /// The address of the picture of one pixel that the image shows; nil if it shows none.
        var pixel: String?
        /// How often the page runs the script.
        var runs = 1
        /// Whether the visitor wants to receive few bytes.
        var savesData = false
        /// Whether the wish for less motion ends after the script has run.
        var endsReducedMotion = false
        /// Whether the page has a second image with the same attributes.
        var hasTwo = false
        /// The value that a script of the page gives the attribute before the server answers; nil for none.
        var next: String?
        /// Whether the image is in an editor.
        var isEditable = false
        /// The address of the picture that arrives, of a `<source>` that the script does not change; nil if none arrives.
        var arriving: String?
        /// The condition of a `<source>` beside the image; nil for an image outside of a `<picture>`.
        var media: String?
        /// The picture of the image's style.
        var content = ""
        /// Whether a script of the page replaces the style of the image, after which only a new still picture counts as its cover.
        var losesStyle = false
        /// The element at the place of the button: the image, its card, a caption in the card, or a header.
        var over = "image"
        /// Whether the card has a position, so that it is the image's `offsetParent`.
        var isPositioned = true
        /// Whether a style hides the image, and all that is above it, until the image moves.
        var isHidden = false
        /// The address that a script gives the page after gifreel.js has run; nil for none.
        var nextAddress: String?
        /// Whether the image leaves the view before a style hides it at the end.
        var leavesView = false
        /// The value of `data-gifreel-still`; nil for none.
        var still: String?
    }

    /// What the script has done to a page.
    struct Visit: Decodable {
        /// The value of the image's attribute.
        let value: String
        /// The address of the module that the script has loaded.
        let asked: String?
        /// The listeners of the document.
        let listeners: Int
        /// Whether the image scrolls into view when the focus moves to its button from another one.
        let scrolls: Bool
        /// The keys and presses on a button that the page does not receive.
        let kept: [String]
        /// The address of the still picture that covers the image.
        let cover: String?
        /// The attributes whose changes the script notices.
        let noticed: [String]
        /// The measurements of images and changes of attributes until the script has run: "r" and "w".
        let order: String
        /// Whether Tab reaches the button.
        let hasButton: Bool
        /// Whether the button is visible in view, and whether it moves with its image.
        let isButtonVisible: Bool
        let follows: Bool
        /// Whether the button plays the animation.
        let isPaused: Bool
        /// Whether the buttons are in the document again after a script has replaced all that is in it.
        let returns: Bool
        /// Whether Tab no longer reaches the button after a style has hidden the image.
        let losesButton: Bool
    }

    /// The address of the server of the script.
    static let server = "https://gifs.test/"

    /// The program; nil if it is not installed. scripts/setup installs it.
    static let node: URL? = {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return path.split(separator: ":").map { URL(fileURLWithPath: "\($0)/node") }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }()

    /// The values of the attribute of each page's image: without and with reduced motion.
    static func addresses(_ pages: [Page]) throws -> [[String]] {
        try visits(pages).map { $0.map(\.value) }
    }

    /// Visits each page without and with reduced motion.
    static func visits(_ pages: [Page]) throws -> [[Visit]] {
        let input = [UInt8](try JSONEncoder().encode(pages))
        let script = String(decoding: SiteFile.script.bytes, as: UTF8.self)
        let outcome = try ChildProcess(try #require(node), ["-e", host, script], input: input).finish()
        #expect(outcome.code == 0, "\(outcome.log)")
        return try JSONDecoder().decode([[Visit]].self, from: Data(outcome.bytes))
    }

    private static let host = """
        const { readFileSync } = require("fs");
        const script = process.argv[1];
        const ignore = () => {};
        let views, noticed, cover, place, change;
        class Image {
          get src() { return this.link; }
          set src(link) {
            cover = this.link = link;
            this.complete = true;
            this.onload?.();
          }
        }
        Object.assign(globalThis, { innerHeight: 800, innerWidth: 1280, Image });
        class IntersectionObserver {
          constructor(act) { views = act; }
          observe() {}
          unobserve() {}
        }
        class MutationObserver {
          constructor(act) { change = act; }
          observe(_, { attributeFilter }) { noticed = attributeFilter; }
        }
        class Element {
          attributes = [];
          dataset = {};
          handlers = {};
          style = { content: "" };
          classes = new Set();
          classList = { toggle: (name, isOn) => (isOn ? this.classes.add(name) : this.classes.delete(name), isOn), remove: ignore };
          getAttribute(name) { return this.attributes.find((attribute) => attribute.name === name)?.value ?? null; }
          setAttribute(name, value) {
            Element.order += "w";
            const attribute = this.attributes.find((each) => each.name === name);
            if (attribute) attribute.value = value;
            else this.attributes.push({ name, value });
          }
          removeAttribute(name) { this.attributes = this.attributes.filter((attribute) => attribute.name !== name); }
          matches(selector) { return !selector.includes(":read-write"); }
          closest() { return null; }
          top = 9000;
          getBoundingClientRect() {
            Element.order += "r";
            return { top: this.top, bottom: this.top + 100, left: 0, right: 100, width: 100, height: 100 };
          }
          addEventListener(name, handler) { this.handlers[name] = handler; }
          append(child) { child.isConnected = true; }
          before(button) { button.isConnected = true; }
          remove() { this.isConnected = false; }
          contains(other) { return other === this; }
          querySelectorAll() { return []; }
          attachShadow() { return (this.tree = new Element()); }
          scrollIntoView() { this.isInView = true; }
        }
        let location;
        class Link extends Element {
          set href(link) { this.url = URL.canParse(link, location) ? new URL(link, location).href : link; }
          get href() { return this.url; }
        }
        class Document extends Element {
          get currentScript() { return this.script; }
        }
        class CSSStyleSheet {
          replaceSync() {}
        }
        function visit(page, matches) {
          const { settings, name, link, attributes, loading, imageName, pixel, runs, savesData, endsReducedMotion, next } = page;
          const img = new Element();
          Object.assign(img, { localName: "img", loading, isConnected: true, alt: "" }, pixel && { currentSrc: pixel, naturalWidth: 1 });
          img.matches = (selector) => !selector.includes(":read-write") || page.isEditable;
          img.style.content = page.content;
          img.dataset.gifreelStill = page.still;
          if (page.isHidden) img.checkVisibility = ({ checkVisibilityCSS }) => !checkVisibilityCSS || img.top < 9000;
          location = "https://site.test/post";
          if (page.media) {
            const source = new Element();
            source.setAttribute("media", page.media);
            const querySelector = (selector) => (page.media.includes(/\\*=(.*)]/.exec(selector)[1]) ? source : null);
            img.closest = () => ({ querySelectorAll: () => [source], querySelector });
          }
          const [card, caption, header] = [new Element(), new Element(), new Element()];
          card.contains = (other) => [card, caption, img].includes(other);
          img.parentNode = card;
          cover = place = undefined;
          for (const [key, value] of Object.entries({ ...attributes, [name]: link })) img.setAttribute(key, value);
          let asked;
          let listeners = 0;
          const images = [img];
          if (page.hasTwo) {
            images.push(Object.assign(new Element(), { localName: "img", loading, isConnected: true, alt: "" }));
            images[1].setAttribute(name, link);
          }
          Element.order = "";
          const [made, moved] = [{}, {}];
          const later = [];
          const delays = next !== undefined;
          const load = (module) => ((asked = module), new Promise(ignore));
          const document = new Document();
          Object.assign(document, {
            addEventListener: (name, handler) => ((listeners += 1), (document.handlers[name] = handler)),
            elementFromPoint: () => ({ image: img, card, caption, header })[page.over], body: new Element(),
            script: { src: "\(server)gifreel.js", dataset: settings }, documentElement: document, querySelector: ignore,
            createElement: (name) => (made[name] = name === "a" ? new Link() : new Element()), querySelectorAll: () => images,
          });
          img.offsetParent = page.isPositioned ? card : document.body;
          if (imageName) Object.defineProperty(document, imageName, { value: img });
          const names = [
            "document", "navigator", "matchMedia", "IntersectionObserver", "MutationObserver", "Document", "Element", "CSSStyleSheet",
            "requestAnimationFrame", "addEventListener", "setTimeout", "setInterval", "load",
          ];
          const query = { matches };
          const media = () => query;
          const values = [
            document, { connection: { saveData: savesData } }, media, IntersectionObserver, MutationObserver, Document, Element, CSSStyleSheet,
            ignore, (name, handler) => (moved[name] = handler), (work, delay) => delay || (delays ? later.push(work) : work()),
            (work) => (place = work), load,
          ];
          for (let run = 0; run < runs; run += 1) new Function(...names, script.replaceAll("import(", "load("))(...values);
          const { order } = Element;
          location = page.nextAddress ?? location;
          if (delays) {
            img.setAttribute(name, next);
            change([{ type: "attributes", target: img, addedNodes: [] }]);
            for (const work of later) work();
          }
          if (endsReducedMotion) {
            query.matches = false;
            query.onchange();
          }
          // Of a focus that moves within a shadow tree, the host and the document receive no event.
          const controls = made["gifreel-controls"];
          const { focusin } = controls.tree.handlers;
          focusin?.({ target: { owner: { img, link } } });
          const kept = [];
          const presses = [["click"], ["mousedown"], ["mouseup"], ["pointerdown"]];
          for (const [kind, key] of [...presses, ["keydown", " "], ["keyup", "Enter"], ["keydown", "Escape"]]) {
            controls[`on${kind}`]?.({ key, stopPropagation: () => kept.push(key ?? kind) });
          }
          cover = undefined;
          if (page.arriving) {
            Object.assign(img, { complete: true, naturalWidth: 320, currentSrc: page.arriving });
            document.handlers.load({ type: "load", target: img, stopImmediatePropagation: ignore });
          }
          // The pointer enters an element beside the image, and moves over the image.
          moved.pointerover?.({ x: 50, y: 8000 });
          moved.mousemove?.({ x: 50, y: 9050 });
          views([{ target: img, isIntersecting: true, boundingClientRect: img.getBoundingClientRect() }]);
          place?.();
          const hasButton = made.button.owner !== undefined && made.button.isConnected;
          const isButtonVisible = made.button.classes.has("on");
          const isPaused = made.button.classes.has("play");
          const { transform } = made.button.style;
          // Something above the image becomes smaller.
          img.top = 100;
          place?.();
          const follows = made.button.style.transform !== transform;
          if (page.losesStyle) {
            cover = undefined;
            img.style = { content: "" };
            place?.();
          }
          controls.isConnected = false;
          place?.();
          const returns = controls.isConnected;
          if (page.leavesView) views([{ target: img, isIntersecting: false }]);
          img.checkVisibility = () => false;
          place?.();
          const losesButton = !made.button.isConnected;
          const value = img.getAttribute(name);
          return { value, asked, listeners, scrolls: img.isInView === true, kept, cover, noticed, order, hasButton, isButtonVisible, follows, isPaused, returns, losesButton };
        }
        const pages = JSON.parse(readFileSync(0, "utf8"));
        console.log(JSON.stringify(pages.map((page) => [visit(page, false), visit(page, true)])));
        """
}
