internal import Media
internal import Renditions

/// The schemas of bodies (JSON Schema 2020-12, as in OpenAPI 3.1).
enum APISchemas {
    static let text: JSONValue = ["type": "string"]
    /// Bytes. JSON Schema has no such type, but generated clients decode a body as JSON or text unless it has this format.
    static let binary: JSONValue = ["type": "string", "format": "binary"]
    static let url: JSONValue = ["type": "string", "pattern": "^https?://.+"]

    static let upload: [String: JSONValue] = [
        "image/gif": binary, "image/apng": binary, "image/webp": binary, "image/avif": binary, "video/mp4": binary,
        "video/quicktime": binary, "video/webm": binary, "application/octet-stream": binary,
        "multipart/form-data": [
            "type": "object", "properties": ["file": ["type": "string", "contentMediaType": "application/octet-stream"]],
            "required": ["file"],
        ],
    ]

    /// Bodies that `Accept` selects: a source, its AVIF, animated WebP or MP4, or an image that is no animation.
    static var automatic: [String: JSONValue] {
        let types = SourceFormat.allCases.map(\.mediaType) + [Rendition.Format.avif, .awebp, .mp4, .jpg].map(\.contentType)
        return Dictionary(types.map { ($0, binary) }, uniquingKeysWith: { first, _ in first })
    }

    /// Bodies in any of the formats, or a source.
    static var anyRendition: [String: JSONValue] {
        var content = automatic
        for format in Rendition.Format.offered {
            content[format.contentType] = format == .json ? reference("Facts") : format == .html ? text : binary
        }
        return content
    }

    static func reference(_ name: String) -> JSONValue { ["$ref": .text("#/components/schemas/\(name)")] }

    /// An object without other members. The name of an optional member ends with a question mark.
    private static func object(_ members: [String: JSONValue]) -> JSONValue {
        let required = members.keys.filter { !$0.hasSuffix("?") }.sorted()
        let properties = members.map { ($0.hasSuffix("?") ? String($0.dropLast()) : $0, $1) }
        return [
            "type": "object", "properties": .object(Dictionary(uniqueKeysWithValues: properties)),
            "required": .list(required.map(JSONValue.text)), "additionalProperties": false,
        ]
    }

    static func list(of items: JSONValue) -> JSONValue { ["type": "array", "items": items] }

    /// An object whose members have any names.
    private static func map(to values: JSONValue) -> JSONValue { ["type": "object", "additionalProperties": values] }

    static func words(_ choices: [some RawRepresentable<String>]) -> JSONValue {
        ["type": "string", "enum": .list(choices.map { .text($0.rawValue) })]
    }

    private static let count: JSONValue = ["type": "integer", "minimum": 0]
    private static let countOrNull: JSONValue = ["type": ["integer", "null"], "minimum": 0]
    private static let integerOrNull: JSONValue = ["type": ["integer", "null"]]
    private static let seconds: JSONValue = ["type": "number", "minimum": 0]
    private static let flag: JSONValue = ["type": "boolean"]
    private static let digest: JSONValue = ["type": "string", "pattern": "^[0-9a-f]{64}$"]

    private static let problem = object([
        "type": ["const": "about:blank"], "title": text, "status": ["type": "integer"], "detail": text, "code": text,
    ])

    /// A problem with one of the codes. There is one for each status of each operation, so it states only the differences.
    /// Generators of clients ignore a reference that has siblings.
    static func problem(_ rows: [ProblemTable.Row]) -> JSONValue {
        let differences: JSONValue = [
            "properties": [
                "status": ["enum": .list(Set(rows.map(\.status)).sorted().map(JSONValue.whole))],
                "code": ["enum": .list(Set(rows.map(\.code)).sorted().map(JSONValue.text))],
            ]
        ]
        return ["allOf": [reference("Problem"), differences]]
    }

    /// The schemas to which operations and other schemas refer.
    static var named: [String: JSONValue] {
        [
            "Facts": facts, "FactsList": factsList, "FactsPage": factsPage, "FactsRendition": factsRendition, "OEmbed": oembed,
            "Purged": purged, "Cache": cache, "Explanation": explanation, "Failure": failure, "Top": top, "Blocked": blocked,
            "Listed": listed, "ListedRenditions": listedRenditions, "Problem": problem, "PrewarmEntry": prewarmEntry,
            "PrewarmAccepted": object(["id": text, "total": count]), "PrewarmReport": prewarmReport,
            "PrewarmJobs": prewarmJobs, "Status": status,
        ]
    }

    private static let status = object([
        "state": ["type": "string", "enum": ["fetching", "waiting", "encoding", "done", "failed"]], "fetched_bytes": count,
        "total_bytes": integerOrNull, "frames_done": count, "frames_total": integerOrNull, "queue_position": integerOrNull,
        "url?": text, "problem?": problem(ProblemTable.all),
    ])

    private static let facts = object([
        "source": object([
            "url": ["type": ["string", "null"]],
            "type": ["type": "string", "enum": .list(SourceFormat.allCases.map { .text($0.name) })],
            "sha256": digest, "bytes": count, "width": count, "height": count, "frames": count, "loop_count": countOrNull,
            "duration": seconds, "delays": list(of: seconds), "animated": flag, "transparent": flag, "has_alpha": flag,
            "complete?": flag,
        ]),
        "placeholder?": object(["dominant_color": ["type": "string", "pattern": "^#[0-9a-f]{6}$"], "image?": text]),
        "blurhash?": text, "fingerprints?": list(of: object(["frame": count, "pdq": digest, "quality": count])),
        "flashes?": object(["general": count, "red": count, "worst_second?": seconds]),
        "renditions": map(to: reference("FactsRendition")), "page?": reference("FactsPage"),
    ])

    private static let factsPage = object([
        "as": words(PageRule.Use.allCases), "reason?": words(PageRule.Reason.allCases), "src?": text, "still?": text,
        "video?": list(of: object(["src": text, "type": text])),
    ])

    private static let factsList = object([
        "images": list(
            of: object([
                "url": text, "state": words(FactsList.State.allCases), "code?": text, "queued?": flag,
                "source?": object([
                    "type?": text, "bytes": count, "width": count, "height": count, "frames": count, "duration": seconds,
                    "loop_count": countOrNull, "animated": flag, "transparent?": flag,
                ]),
                "renditions?": map(to: reference("FactsRendition")), "page": reference("FactsPage"),
            ]))
    ])

    private static let factsRendition = object([
        "url": text, "type?": text, "bytes?": count, "width?": count, "height?": count, "duration?": seconds,
        "undithered?": flag,
    ])

    private static let oembed = object([
        "type": ["type": "string", "const": "video"], "version": ["type": "string", "const": "1.0"], "provider_name": text,
        "title": text, "cache_age": count, "thumbnail_url?": text, "thumbnail_width?": count, "thumbnail_height?": count,
        "html": text, "width": count, "height": count,
    ])

    private static let purged = object([
        "purged": count, "bytes": count, "complete": flag, "nodes?": count, "acknowledged?": count, "id?": text,
    ])

    private static let cache = object([
        "objects": count, "bytes": count, "aliases": count, "alias_bytes": count, "disk_bytes": count, "limit_bytes": count,
        "free_bytes?": count, "not_storing?": text, "hits": count, "misses": count, "evictions": count, "purged": count,
        "corrupt": count, "unstored": count, "negative": count, "in_progress": count,
        "store?": object(["available": flag, "queued": count, "queued_bytes": count]),
        "cluster?": object([
            "shared": flag, "node": text, "nodes": count, "leases": count, "pending_purges": count,
            "members": list(of: object(["node": text, "position": text, "lag": seconds])),
        ]),
    ])

    private static let blocked = object([
        "blocked": list(of: object(["url": text, "label": text])), "compared": count, "without_fingerprints": count,
        "next?": text,
    ])

    private static let listed = object(["url": text, "renditions": reference("ListedRenditions")])

    private static let listedRenditions = list(
        of: object([
            "format": text, "options": map(to: text), "bytes": count, "age": count,
            "state": ["type": "string", "enum": ["fresh", "stale", "expired", "unconfirmed"]], "fresh_for": count,
            "hits": count, "object": text,
        ]))

    private static let explanation = object([
        "url": text, "rendition": text, "mount?": text, "mounts": list(of: text), "rule?": text, "lacks_signature": flag,
        "refusal?": reference("Failure"), "renditions": reference("ListedRenditions"),
        "failures": list(
            of: object([
                "rendition?": text, "of_source": flag, "failure": reference("Failure"), "age": count, "remaining": count,
            ])),
        "not_storing?": text, "answer": words(Explanation.Answer.allCases), "summary": text,
        "trial?": object([
            "failure?": reference("Failure"), "source_type?": text, "source_bytes?": count, "bytes?": count, "frames?": count,
            "width?": count, "height?": count, "times": map(to: ["type": "number"]),
        ]),
    ])

    private static let top = object([
        "by": words(UsageBoard.Measure.allCases), "of": words(UsageBoard.Subject.allCases), "minutes": count,
        "entries": list(of: object(["key": text, "amount": count, "error": count])),
    ])

    private static let failure = object(["status": count, "code": text, "detail": text, "cause?": text])

    private static let prewarmEntry: JSONValue = [
        "type": "object",
        "properties": [
            "url": url,
            // A page is composed for each request, so there is nothing to produce in advance.
            "format": words(Rendition.Format.offered.filter { $0 != .html }),
        ],
        "required": ["url"],
        // Options of the format, as strings or numbers.
        "additionalProperties": ["type": ["string", "number"]],
    ]

    private static let prewarmJobs = object([
        "jobs": list(
            of: object([
                "id": text, "added": count, "state": text, "total": count, "done": count, "failed": count, "hits": count,
                "new": count, "bytes": count, "saved": ["type": "integer"],
            ]))
    ])

    private static let prewarmReport = object([
        "id": text, "state": text, "total": count, "done": count, "failed": count, "hits": count, "new": count, "bytes": count,
        "saved": ["type": "integer"], "errors": list(of: object(["url": text, "code": text, "detail": text])),
        "results?": list(
            of: object([
                "number": count,
                "outcome": object([
                    "result": ["type": "string", "enum": ["hit", "new", "failed"]], "bytes": count, "source_bytes": count,
                    "code?": text, "detail?": text,
                ]),
            ])),
    ])
}
