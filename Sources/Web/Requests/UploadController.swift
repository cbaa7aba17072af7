internal import Fetch
internal import HTTP
internal import Renditions
internal import Telemetry

/// Receives uploaded GIFs: the body of a request, or the file in a form.
struct UploadController: Sendable {
    let renditions: RenditionController
    let access: AccessControl
    let parser: RouteParser
    let admission: UploadAdmission
    let meter: WorkMeter
    let maxBytes: Int

    /// Returns the sink for the body of an upload. All checks that do not need the body happen here, before the client sends it.
    ///
    /// - Throws: ``Problem`` if the upload is refused.
    func sink(
        _ unchecked: ParsedTarget, _ rendition: Rendition, _ client: ClientContext, _ request: borrowing HTTPRequest
    ) throws(Problem) -> any HTTPBodySink {
        var target = unchecked
        let form = try MultipartParser(form: request.headerBytes("Content-Type"))
        try access.checkLoop(request)
        // The signature of a form covers its fields too, so it is checked at the end of the form.
        if form == nil { try access.authorize(&target) }
        let limit = form == nil ? maxBytes : maxBytes + FormSink.overhead
        if let length = request.header("Content-Length").flatMap({ Int($0) }), length > limit {
            throw .uploadTooLarge(limit: maxBytes)
        }
        guard renditions.pipeline.hasCapacity, let reservation = admission.admit(client.share) else {
            throw .overloaded
        }
        try access.countUpload(client.network)
        reservation.onRefusal { problem in
            access.giveBackUpload(client.network)
            if problem.isServerFault { renditions.log.failed(problem, host: nil) }
        }
        let span = RequestSpan(of: request, renditions.tracer)
        let respond = { @Sendable (rendition: Rendition, source: SourceFile, callback: SourceURL?, target: ParsedTarget) in
            defer { withExtendedLifetime(reservation) {} }
            meter.uploaded(source.count)
            let upload = UploadRequest(
                rendition, of: source, urgency: client.urgency, client: client.share,
                allowance: access.allowance(client.network, target.key))
            var client = client
            client.callback = callback
            return await span.run { [client] in
                if let accepted = await renditions.asynchronous.response(to: upload, client, holding: reservation) {
                    return accepted
                }
                return await renditions.uploadResponse(upload, target.terms)
            }
        }
        let checked = target
        let hints = WidthHints { request.header($0) }
        guard let form else {
            let callback = try renditions.asynchronous.receiver(target, client)
            return UploadSink(limit: maxBytes, reservation: reservation) { await respond(rendition, $0, callback, checked) }
        }
        let text = request.target
        return FormSink(parser: form, limit: maxBytes, reservation: reservation) { fields throws(Problem) in
            var target = try parser.parse(text, hasBody: true, fields: fields)
            try access.authorize(&target)
            target = target.resolved(hints)
            guard case .upload(let rendition) = target.route else {
                throw .badRequest("The target names a source, and the form has a file.")
            }
            let callback = try renditions.asynchronous.receiver(target, client)
            return { [target] in await respond(rendition, $0, callback, target) }
        }
    }
}
