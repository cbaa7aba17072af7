internal import Renditions

/// One operation of the interface: a row of the table from which `/openapi.json` is composed (``APIOperation/table(_:)``).
struct APIOperation: Sendable {
    struct Parameter: Sendable {
        let name: String
        /// `path`, `query` or `header`.
        let place: String
        let schema: JSONValue
        let summary: String
        var isRequired = false

        static func path(_ name: String, _ schema: JSONValue, _ summary: String) -> Parameter {
            Parameter(name: name, place: "path", schema: schema, summary: summary, isRequired: true)
        }

        static func query(_ name: String, _ schema: JSONValue, _ summary: String, isRequired: Bool = false) -> Parameter {
            Parameter(name: name, place: "query", schema: schema, summary: summary, isRequired: isRequired)
        }
    }

    /// A response that is not a problem.
    struct Answer: Sendable {
        let status: Int
        let summary: String
        /// Schemas by media type; empty for a response without a body.
        var content: [String: JSONValue] = [:]
        var fields: [String] = []

        init(_ status: Int, _ summary: String, _ content: [String: JSONValue] = [:], fields: [String] = []) {
            self.status = status
            self.summary = summary
            self.content = content
            self.fields = fields
        }

        /// A document with a named schema.
        static func json(_ summary: String, _ schema: String, status: Int = 200, fields: [String] = []) -> Answer {
            Answer(status, summary, ["application/json": APISchemas.reference(schema)], fields: fields)
        }

        static let notModified = Answer(304, "The client has it already.")

        /// One part, which is not valid by itself, or several parts in one body.
        static func part(_ content: [String: JSONValue], fields: [String] = []) -> Answer {
            let types = Array(content.keys) + ["multipart/byteranges"]
            let parts = Dictionary(uniqueKeysWithValues: types.map { ($0, APISchemas.binary) })
            return Answer(206, "A part of it, or several.", parts, fields: ["Content-Range"] + fields)
        }

        static func part(_ type: String) -> Answer { part([type: APISchemas.binary]) }
    }

    /// The method in lower case, as OpenAPI requires. `HEAD` follows from `get`; OpenAPI 3.1 cannot describe `PURGE`.
    let method: String
    let path: String
    let id: String
    let summary: String
    var parameters: [Parameter] = []
    /// Schemas of the request's body by media type; empty for none.
    var body: [String: JSONValue] = [:]
    let answers: [Answer]
    var problems: [ProblemTable.Row] = []
    var needsToken = false
    /// Whether browsers get its problems as pages.
    var hasErrorPages = false

    // MARK: The table

    static func table(_ presets: RenditionPresets) -> [APIOperation] {
        renditions(presets) + automatic(presets) + facts + mounts + objects + statusRoutes + pages + operators + service
    }

    private static let sourceProblems =
        ProblemTable.request + ProblemTable.access + ProblemTable.source + ProblemTable.conversion + ProblemTable.rate
        + ProblemTable.load + ProblemTable.store
    private static let uploadProblems =
        ProblemTable.request + ProblemTable.access + ProblemTable.conversion + ProblemTable.rate + ProblemTable.load

    private static let url = Parameter.query("url", APISchemas.url, "The URL of the source.", isRequired: true)
    private static let source = Parameter.path(
        "source", APISchemas.url, "The URL of the source, percent-encoded as one segment.")
    /// The parameter with which a request for a rendition prefers a status to waiting.
    private static let prefer = Parameter(
        name: "Prefer", place: "header", schema: ["type": "string", "enum": ["respond-async"]],
        summary: "Does not wait for the rendition (RFC 7240).")
    private static let accepted = Answer.json(
        "The work has begun; its status is at Location.", "Status", status: 202, fields: ["Location", "Preference-Applied"])

    private static func renditions(_ presets: RenditionPresets) -> [APIOperation] {
        Rendition.Format.offered.flatMap { format -> [APIOperation] in
            let name = format.rawValue
            let options = APIParameters.options(of: format, presets)
            let problems =
                sourceProblems + (format.isSentAsStored ? ProblemTable.waiting : [])
                + (OptionReader.OnLarger.choices(for: format).isEmpty ? [] : ProblemTable.larger)
            let answers = self.answers(format)
            var all = [
                APIOperation(
                    method: "get", path: "/\(name)", id: "get_\(name)",
                    summary: "The \(name) of a source.", parameters: [url] + options + [prefer], answers: answers,
                    problems: problems, hasErrorPages: format == .html),
                APIOperation(
                    method: "get", path: "/\(name)/{source}", id: "get_\(name)_of",
                    summary: "The same as /\(name),name=value/{source}.",
                    parameters: [source] + options + [prefer], answers: answers, problems: problems,
                    hasErrorPages: format == .html),
            ]
            if format != .html {
                all.append(
                    APIOperation(
                        method: "post", path: "/\(name)", id: "post_\(name)",
                        summary: "The \(name) of the animation in the body.",
                        parameters: APIParameters.options(of: format, presets, hasChoices: false) + [prefer],
                        body: APISchemas.upload, answers: uploadAnswers(format), problems: uploadProblems))
            }
            return all
        }
    }

    /// The routes whose rendition `Accept` selects.
    private static func automatic(_ presets: RenditionPresets) -> [APIOperation] {
        let options = APIParameters.options(of: .mp4, presets, hasChoices: false) + [prefer]
        let answers = [
            Answer(
                200, "The rendition that Accept selects, or the source.", APISchemas.automatic,
                fields: ["ETag", "Cache-Control", "Cache-Status", "Vary"]),
            accepted, .part(APISchemas.automatic, fields: ["Vary"]), .notModified,
        ]
        return [
            APIOperation(
                method: "get", path: "/\(Route.auto)", id: "get_auto",
                summary: "The AVIF, WebP, MP4 or source, by Accept.",
                parameters: [url] + options,
                answers: answers, problems: sourceProblems),
            APIOperation(
                method: "get", path: "/\(Route.auto)/{source}", id: "get_auto_of",
                summary: "The same by path.", parameters: [source] + options, answers: answers,
                problems: sourceProblems),
        ]
    }

    private static let facts = [
        APIOperation(
            method: "post", path: "/\(Route.facts)", id: "post_facts",
            summary: "The stored facts of a page's images, and what the page does with them. Fetches nothing.",
            parameters: [
                .query("queue", ["type": "string", "enum": ["true", "false"]], "Whether missing renditions are produced.")
            ] + APIParameters.access,
            body: [
                "application/json": ["type": "array", "items": APISchemas.text, "maxItems": .whole(FactsController.maxSources)]
            ],
            answers: [.json("The facts.", "FactsList")],
            problems: ProblemTable.request + ProblemTable.access + ProblemTable.rate + ProblemTable.load),
        APIOperation(
            method: "get", path: "/\(Route.factsModule)", id: "get_facts_module",
            summary: "What gifreel.js does with the images of a page, as a module.",
            parameters: [
                .query("url", APISchemas.list(of: APISchemas.url), "The URLs of sources."),
                .query("try", APISchemas.text, "Any text: browsers load a module once per address."),
            ],
            answers: [Answer(200, "The module.", ["text/javascript": APISchemas.text])],
            problems: ProblemTable.request + ProblemTable.access + ProblemTable.rate + ProblemTable.load),
    ]

    private static func content(_ format: Rendition.Format) -> [String: JSONValue] {
        let type = format.contentType
        return [type: format == .json ? APISchemas.reference("Facts") : format == .html ? APISchemas.text : APISchemas.binary]
    }

    private static func answers(_ format: Rendition.Format) -> [Answer] {
        let fields = ["ETag", "Last-Modified", "Cache-Control", "Cache-Status"]
        let whole = Answer(200, "The rendition.", content(format), fields: fields)
        return [whole, accepted, .part(content(format), fields: fields), .notModified]
    }

    private static func uploadAnswers(_ format: Rendition.Format) -> [Answer] {
        answers(format).filter { $0.status == 200 }.map {
            Answer($0.status, $0.summary, $0.content, fields: $0.fields + ["Content-Location"])
        } + [accepted]
    }

    private static let mounts = [
        APIOperation(
            method: "get", path: "/{mount}/{path}", id: "get_mounted",
            summary: "A rendition below a mount, in the format of the extension. Options are in the query.",
            parameters: [
                prefer, .path("mount", ["type": "string", "pattern": "^[a-z0-9_-]+$"], "The name of a mount."),
                .path("path", APISchemas.text, "The path of the source with the extension of a format. It may have slashes."),
            ],
            answers: [
                accepted,
                Answer(200, "The rendition.", APISchemas.anyRendition, fields: ["ETag", "Cache-Control", "Cache-Status"]),
                .part(APISchemas.anyRendition), .notModified,
            ], problems: sourceProblems + ProblemTable.waiting + ProblemTable.larger, hasErrorPages: true)
    ]

    private static let objects = [
        APIOperation(
            method: "get", path: "/object/{name}", id: "get_object",
            summary: "A stored rendition by its content id.",
            parameters: [
                .path("name", ["type": "string", "pattern": "^[0-9a-f]{64}\\.[a-z0-9]+$"], "The id and the extension.")
            ],
            answers: [
                Answer(200, "The rendition.", APISchemas.anyRendition, fields: ["ETag", "Cache-Control"]),
                .part(APISchemas.anyRendition), .notModified,
            ], problems: ProblemTable.request + ProblemTable.store + ProblemTable.rate + ProblemTable.load)
    ]

    private static func file(_ file: SiteFile, _ summary: String, _ type: String, _ schema: JSONValue) -> APIOperation {
        APIOperation(
            method: "get", path: "/\(file.rawValue)", id: "get_\(file)", summary: summary,
            answers: [Answer(200, "The file.", [type: schema]), .part(type), .notModified])
    }

    private static let pages = [
        APIOperation(
            method: "get", path: "/", id: "get_home", summary: "A page for trying the service.",
            answers: [
                Answer(200, "The page.", ["text/html; charset=utf-8": APISchemas.text]), .part("text/html; charset=utf-8"),
                .notModified,
            ], problems: [ProblemTable.Row(404, "not_found")]),
        file(.script, "The script for pages with GIF images.", "text/javascript; charset=utf-8", APISchemas.text),
        file(.videoModule, "The script's module for large animations.", "text/javascript; charset=utf-8", APISchemas.text),
        file(.sample, "The sample of the home page.", "image/gif", APISchemas.binary),
        file(.icon, "The icon of the pages.", "image/x-icon", APISchemas.binary),
        file(.index, "An index for language models.", "text/plain; charset=utf-8", APISchemas.text),
        APIOperation(
            method: "get", path: "/openapi.json", id: "get_openapi", summary: "This document.",
            answers: [
                Answer(200, "The document.", ["application/json": ["type": "object"]]), .part("application/json"), .notModified,
            ]),
        APIOperation(
            method: "get", path: "/oembed", id: "get_oembed",
            summary: "The oEmbed document of an address.",
            parameters: [
                .query("url", APISchemas.url, "The address of a page, of a rendition or of a GIF.", isRequired: true),
                .query("maxwidth", ["type": "integer", "minimum": 1, "maximum": 999_999_999], "The greatest width."),
                .query("maxheight", ["type": "integer", "minimum": 1, "maximum": 999_999_999], "The greatest height."),
                .query("format", ["type": "string", "enum": ["json"]], "The form of the document."),
            ],
            answers: [.json("The document.", "OEmbed"), .part("application/json"), .notModified],
            problems: sourceProblems + ProblemTable.format),
    ]

    private static let statusID = Parameter.path(
        "id", ["type": "string", "pattern": "^[0-9a-f]{32}$"], "The id in the Location of the 202 response.")

    private static let statusRoutes = [
        APIOperation(
            method: "get", path: "/status/{id}", id: "get_status",
            summary: "The progress of a request that did not wait, as JSON or, by Accept, as text/event-stream.",
            parameters: [
                statusID,
                Parameter(
                    name: "Last-Event-ID", place: "header", schema: APISchemas.text,
                    summary: "The id of the last event that a client has received; after the final one, the answer is 204."),
            ],
            answers: [
                Answer(
                    200, "The progress.",
                    ["application/json": APISchemas.reference("Status"), "text/event-stream": APISchemas.text]),
                Answer(204, "The event stream has ended before."),
            ], problems: [ProblemTable.Row(404, "not_found")] + ProblemTable.load),
        APIOperation(
            method: "delete", path: "/status/{id}", id: "delete_status",
            summary: "Leaves the work and forgets the status.", parameters: [statusID],
            answers: [Answer(204, "The status is forgotten.")],
            problems: [ProblemTable.Row(404, "not_found"), ProblemTable.Row(503, "overloaded")]),
    ]

    private static let operators = requiringToken([
        APIOperation(
            method: "get", path: "/cache", id: "get_cache",
            summary: "The statistics of the cache, the stored renditions of a source, or the stored sources that are blocked.",
            parameters: [
                .query("url", APISchemas.text, "The URL of a source."),
                .query("blocked", ["type": "string", "enum": ["true"]], "Stored sources on the block list."),
                .query("after", APISchemas.text, "The value of next in the previous part."),
            ],
            answers: [
                Answer(
                    200, "The statistics, or what is stored.",
                    [
                        "application/json": [
                            "oneOf": [
                                APISchemas.reference("Cache"), APISchemas.reference("Listed"), APISchemas.reference("Blocked"),
                            ]
                        ]
                    ])
            ]),
        APIOperation(
            method: "delete", path: "/cache", id: "delete_cache",
            summary: "Purges the scope that exactly one of url, prefix, host, mount and all gives.",
            parameters: [
                .query("url", APISchemas.text, "The URL of a source."),
                .query("prefix", APISchemas.text, "The beginning of URLs, or of addresses on this server."),
                .query("host", APISchemas.text, "A host, by any scheme and port."),
                .query("mount", APISchemas.text, "The name of a mount."),
                .query("all", ["type": "string", "enum": ["true"]], "Everything."),
                .query(
                    "wait", ["type": "string", "pattern": "^[0-9]{1,3}(s|ms)?$"],
                    "The longest wait for all nodes of a cluster, such as 30s."),
            ],
            answers: [
                .json("What was removed.", "Purged"),
                .json(
                    "What was removed so far: not every node of the cluster has applied the purge.", "Purged", status: 202,
                    fields: ["Location"]),
            ]),
        APIOperation(
            method: "get", path: "/explain", id: "get_explain", summary: "Why a source is or is not converted.",
            parameters: [
                .query("url", APISchemas.text, "A source, or the address of a rendition here.", isRequired: true),
                .query("fetch", ["type": "string", "enum": ["true", "false"]], "Whether to try it without storing anything."),
            ],
            answers: [.json("The explanation.", "Explanation")]),
        APIOperation(
            method: "get", path: "/top", id: "get_top", summary: "The largest consumers of the last minutes.",
            parameters: [
                .query("by", APISchemas.words(UsageBoard.Measure.allCases), "The quantity that is summed."),
                .query("of", APISchemas.words(UsageBoard.Subject.allCases), "The subject by which the sums are grouped."),
                .query("limit", ["type": "integer", "minimum": 1, "maximum": 100], "Entries, at most."),
            ],
            answers: [.json("The largest sums.", "Top")]),
        APIOperation(
            method: "get", path: "/purges/{id}", id: "get_purge", summary: "The progress of a purge in a cluster.",
            parameters: [.path("id", APISchemas.text, "The id of the purge.")],
            answers: [.json("What was removed so far.", "Purged")]),
        APIOperation(
            method: "post", path: "/prewarm", id: "post_prewarm",
            summary: "Renditions to produce before they are requested.",
            parameters: [
                .query("retries", ["type": "integer", "minimum": 0, "maximum": 20], "Attempts after a temporary failure."),
                .query("concurrency", ["type": "integer", "minimum": 1, "maximum": 1_000_000], "Renditions made at once."),
                .query(
                    "callback", ["type": "string", "format": "uri"],
                    "The URL that gets the report when all are processed, if webhooks.allow permits it."),
                Parameter(
                    name: "Idempotency-Key", place: "header", schema: ["type": "string", "minLength": 1, "maxLength": 255],
                    summary: "A repeated request with the same key and content adds no other job."),
            ],
            body: [
                "application/json": APISchemas.list(of: APISchemas.reference("PrewarmEntry")),
                "application/x-ndjson": APISchemas.text,
            ],
            answers: [.json("The job.", "PrewarmAccepted", status: 202, fields: ["Location"])], problems: ProblemTable.repeated),
        APIOperation(
            method: "get", path: "/prewarm", id: "get_prewarm_jobs", summary: "The jobs, newest first.",
            answers: [.json("The jobs.", "PrewarmJobs")]),
        APIOperation(
            method: "get", path: "/prewarm/{id}", id: "get_prewarm", summary: "The progress of a job.",
            parameters: [
                .path("id", APISchemas.text, "The id of the job."),
                .query("from", ["type": "integer", "minimum": 0, "maximum": 1_000_000_000], "The first outcome to list."),
            ],
            answers: [.json("The progress.", "PrewarmReport")]),
        APIOperation(
            method: "delete", path: "/prewarm/{id}", id: "delete_prewarm",
            summary: "Cancels the unfinished part of a job.", parameters: [.path("id", APISchemas.text, "The id of the job.")],
            answers: [.json("The progress.", "PrewarmReport")]),
    ])

    private static func requiringToken(_ operations: [APIOperation]) -> [APIOperation] {
        operations.map { operation in
            var operation = operation
            operation.problems += ProblemTable.admin + ProblemTable.request + ProblemTable.load
            operation.needsToken = true
            return operation
        }
    }

    private static let service = [
        APIOperation(
            method: "get", path: "/healthz", id: "get_healthz", summary: "Whether the process answers.",
            answers: [Answer(200, "It does.", ["text/plain": APISchemas.text])]),
        APIOperation(
            method: "get", path: "/readyz", id: "get_readyz",
            summary: "Whether the server takes requests.", answers: [Answer(200, "It does.", ["text/plain": APISchemas.text])],
            problems: ProblemTable.load),
        APIOperation(
            method: "get", path: "/metrics", id: "get_metrics",
            summary: "The metrics, for metrics.allow or the admin token.",
            answers: [
                Answer(
                    200, "The metrics.",
                    [
                        "text/plain; version=0.0.4; charset=utf-8": APISchemas.text,
                        "application/openmetrics-text; version=1.0.0; charset=utf-8": APISchemas.text,
                    ])
            ], problems: ProblemTable.admin + [ProblemTable.Row(404, "not_found")] + ProblemTable.load),
    ]
}
