internal import HTTP
internal import Renditions
internal import Sandbox
internal import ServiceContextModule

/// The properties of a request that its processing depends on, beside the target.
struct ClientContext: Sendable {
    /// The client's name for this server; nil if it sent none.
    let host: String?
    /// The scheme that the client used, which a trusted proxy may tell.
    let scheme: HTTPScheme
    let urgency: Urgency
    let allowance: MissAllowance

    init(_ request: borrowing HTTPRequest, _ access: AccessControl) {
        host = request.host
        scheme = request.scheme
        urgency = PriorityField.urgency(request.header("Priority"))
        allowance = access.allowance(request)
    }
}

extension HTTPReply {
    /// A reply whose response is computed in a task, with the request's id and trace in the task's context.
    static func later(
        for request: borrowing HTTPRequest, _ respond: @escaping @Sendable () async -> HTTPResponse
    ) -> HTTPReply {
        let context = ServiceContext(request)
        return .later { await ServiceContext.withValue(context) { await respond() } }
    }
}
