internal import Renditions

/// The file at `/llms.txt` (llmstxt.org): what the service does, and where `/openapi.json` describes each of its addresses. It
/// derives from the same table of operations.
enum ModelIndex {
    private static let document = "openapi.json"

    static let text = composed(APIOperation.table(RenditionPresets()))

    private static func composed(_ table: [APIOperation]) -> String {
        let formats = Set(Rendition.Format.offered.map { "/\($0.rawValue)" })
        let (renditions, others) = table.reduce(into: ([APIOperation](), [APIOperation]())) { lists, operation in
            let isRendition = formats.contains { operation.path == $0 || operation.path.hasPrefix($0 + "/") }
            if isRendition { lists.0.append(operation) } else { lists.1.append(operation) }
        }
        return """
            # Gifreel

            > An HTTP service that converts animated GIFs, APNGs, WebPs, AVIFs and short videos to looping, muted MP4s, WebMs, AVIFs and \
            other formats with the same timing. `GET /mp4/https://example.com/a.gif` is the MP4 of that GIF, \
            `GET /mp4,width=480/https://example.com/a.gif` the same 480 pixels wide, and `POST /mp4` that of the file in the body.

            The links lead to the parts of the OpenAPI 3.1 document that describe each address with its options, responses and errors. \
            Errors are `application/problem+json` with a `code` and a `detail`. A server may ask for signatures: then a program that has \
            no key gets 403 `bad_signature`.

            ## Documentation

            - [OpenAPI](\(document)): the whole interface

            ## Renditions

            \(lines(renditions))

            ## Other addresses

            \(lines(others.filter { !$0.needsToken }))

            ## Optional

            \(lines(others.filter(\.needsToken)))

            """
    }

    private static func lines(_ operations: [APIOperation]) -> String {
        // The source of a rendition may also be in the path, as the document says.
        operations.filter { !$0.path.hasSuffix("/{source}") }.map { operation in
            // A pointer into the document (RFC 6901), percent-encoded for a fragment.
            let pointer =
                "/paths/" + operation.path.replacing("~", with: "~0").replacing("/", with: "~1") + "/" + operation.method
            let fragment = pointer.replacing("{", with: "%7B").replacing("}", with: "%7D")
            let name = "\(operation.method.uppercased()) \(operation.path)"
            return "- [\(name)](\(document)#\(fragment)): \(operation.summary)"
        }.joined(separator: "\n")
    }
}
