/// Pages as common systems write them, with the number of elements in each that get other addresses.
enum PagesOfSystems {
    static let all: [(name: String, replaced: Int, page: String)] = [
        (
            "a post in a block editor", 2,
            """
            <!DOCTYPE html>
            <html lang="en-US"><head><meta charset="UTF-8" /><title>Cats &#8211; Blog</title>
            <link rel='stylesheet' id='block-css' href='https://blog.test/css/style.min.css?ver=6.8' media='all' />
            <script type="text/javascript">window.settings={"gif":"<img src=\\"x.gif\\">"};</script></head>
            <body class="post-template-default single"><article id="post-1" class="post-1 post">
            <figure class="block-image size-full"><img fetchpriority="high" decoding="async" width="480" height="270" src="https://blog.test/uploads/2026/11/cat.gif" alt="A cat jumps" class="image-12" srcset="https://blog.test/uploads/2026/11/cat.gif 480w, https://blog.test/uploads/2026/11/cat-300x169.gif 300w" sizes="(max-width: 480px) 100vw, 480px" /><figcaption class="element-caption">Jump &amp; run</figcaption></figure>
            <p>Text &hellip;<br />more <img src="https://blog.test/uploads/smiley.png" alt=":-)" class="smiley" /></p>
            <p><a href="https://blog.test/uploads/2026/11/dog.gif"><img loading="lazy" src="/uploads/2026/11/dog.gif" alt="" /></a></p>
            </article></body></html>

            """
        ),
        (
            "a post of a newsletter system", 1,
            """
            <section class="gh-content"><figure class="kg-card kg-image-card kg-width-wide kg-card-hascaption"><img src="https://ghost.test/content/images/2026/11/demo.gif" class="kg-image" alt="Demo" loading="lazy" width="1200" height="675"><figcaption><span style="white-space: pre-wrap;">Demo</span></figcaption></figure><hr><figure class="kg-card kg-image-card"><img src="https://ghost.test/content/images/photo.jpg" class="kg-image" alt loading="lazy"></figure></section>
            """
        ),
        (
            "a page of a static generator, minified", 2,
            "<!doctype html><html lang=en><meta charset=utf-8><title>x</title><link rel=canonical href=https://static.test/p/><main><p><img src=/img/a.gif alt=a><figure><img src=img/b.gif loading=lazy alt=\"b &gt; a\"><figcaption>b</figure><pre><code>&lt;img src=\"c.gif\"&gt;</code></pre></main>"
        ),
        (
            "a view of a web framework", 1,
            """
            <div data-controller="gallery" data-action="click->gallery#open">
              <img class="thumb" data-gallery-target="image" src="/assets/spinner-4f1c.gif" alt='It&#39;s "loading"'>
              <template><img src="/assets/row.png"></template>
            </div>
            """
        ),
        (
            "a wiki article", 2,
            """
            <div class="mw-parser-output"><figure class="mw-halign-right" typeof="mw:File/Thumb"><a href="/wiki/File:Earth.gif" class="mw-file-description"><img src="//upload.wiki.test/thumb/2/2c/Earth.gif/220px-Earth.gif" decoding="async" width="220" height="220" class="mw-file-element" srcset="//upload.wiki.test/2/2c/Earth.gif 1.5x" data-file-width="400" data-file-height="400" /></a><figcaption>The Earth</figcaption></figure><math><semantics><annotation-xml><img src="y.gif"></annotation-xml></semantics></math></div>
            """
        ),
        (
            "a topic of a forum", 2,
            """
            <div class='post' itemprop='text'>
            <p><div class="lightbox-wrapper"><a class="lightbox" href="//forum.test/original/1X/a.gif" title="a"><img src="//forum.test/original/1X/a.gif" alt="a|690x388" data-base62-sha1="3Ab" width="690" height="388"></a></div></p>
            <p><img src="https://emoji.forum.test/images/emoji/smile.png?v=12" title=":smile:" class="emoji" alt=":smile:" loading="lazy" width="20" height="20"> <IMG SRC='HTTPS://FORUM.TEST/B.GIF'></p>
            </div>
            """
        ),
        (
            "a page with lazy images", 2,
            """
            <img src="data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==" data-src="https://lazy.test/a.gif" class="lazyload"><noscript><img src="https://lazy.test/a.gif" alt="a"></noscript>
            <img data-gifreel="off" src="https://lazy.test/b.gif">
            """
        ),
        (
            "a page with pictures of several types", 3,
            """
            <picture><source type="image/webp" srcset="a.webp"><img src="a.gif" alt="a"></picture>
            <map name="m"><area href="#"></map><img src="b.gif" usemap="#m"><object data="c.swf"><img src="c.gif"></object>
            <svg viewBox="0 0 1 1"><image href="d.gif"/><title>x</title></svg><img src="e.gif">
            """
        ),
        (
            "a feed entry in XHTML", 1,
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <html xmlns="http://www.w3.org/1999/xhtml"><body><p><img src="https://feed.test/a.gif" alt="a" /><br /></p></body></html>
            """
        ),
        (
            "a page with broken markup", 2,
            """
            <p><b>unclosed <img src=a.gif <i>no</i> <img src='b.gif'alt="x"> a < b && c > d <img src="c.gif" alt="unclosed
            """
        ),
    ]
}
