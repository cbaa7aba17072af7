internal import HTTP
internal import Renditions
internal import ServiceContextModule

/// Receives uploaded GIFs: the body of a request, or the file in a form.
struct UploadController: Sendable {
    private let pipeline: RenditionPipeline
    private let renditions: RenditionController
    private let access: AccessControl
    private let parser: RouteParser
    private let admission: UploadAdmission
    private let meter: WorkMeter
    private let maxBytes: Int

    init(
        pipeline: RenditionPipeline, renditions: RenditionController, access: AccessControl, parser: RouteParser,
        admission: UploadAdmission, meter: WorkMeter, maxBytes: Int
    ) {
        self.pipeline = pipeline
        self.renditions = renditions
        self.access = access
        self.parser = parser
        self.admission = admission
        self.meter = meter
        self.maxBytes = maxBytes
    }

    /// Returns the sink for the body of an upload. All checks that do not need the body happen here, before the client sends it.
    ///
    /// - Throws: ``Problem`` if the upload is refused.
    func sink(
        _ target: ParsedTarget, _ rendition: Rendition, _ client: ClientContext, _ request: borrowing HTTPRequest
    ) throws(Problem) -> any HTTPBodySink {
        guard rendition.format != .html else { throw .badRequest("A page needs the URL of a GIF; uploads have no pages.") }
        let form = try MultipartParser(form: request.header("Content-Type"))
        try access.checkLoop(request)
        // The signature of a form covers its fields too, so it is checked at the end of the form.
        if form == nil { try access.check(target) }
        guard pipeline.hasCapacity, let reservation = admission.admit(request.clientAddress.map { ClientNetwork($0) }) else {
            throw .overloaded
        }
        let context = ServiceContext(request)
        let respond = { @Sendable (rendition: Rendition, source: Source, terms: ResponseTerms) in
            defer { withExtendedLifetime(reservation) {} }
            meter.uploaded(source.count)
            let upload = UploadRequest(rendition, of: source, urgency: client.urgency, allowance: client.allowance)
            return await ServiceContext.withValue(context) { await renditions.uploadResponse(upload, terms) }
        }
        let terms = target.terms
        guard let form else {
            return UploadSink(limit: maxBytes, reservation: reservation) { await respond(rendition, $0, terms) }
        }
        let text = request.target
        return FormSink(parser: form, limit: maxBytes, reservation: reservation) { fields throws(Problem) in
            let target = try parser.parse(text, hasBody: true, fields: fields)
            try access.check(target)
            guard case .upload(let rendition) = target.route else {
                throw .badRequest("The target names a source, and the form has a file.")
            }
            let terms = target.terms
            return { await respond(rendition, $0, terms) }
        }
    }
}
