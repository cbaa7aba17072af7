# The address of a rendition, signed where there is a key.
require "openssl"

def gifreel(source, server: "", key: "", format: "mp4", **given)
  url = source.b.sub(/#.*/mn, "").gsub(/[^!#-;=?-\[\]_a-z~]/n) { |byte| "%%%02X" % byte.ord }
  parts = [format] + given.map { |name, value| "#{name}=#{value}" }.sort
  unless key.empty?
    text = [format, parts.drop(1).join(","), url].join("\n")
    parts << "sig=" + [OpenSSL::HMAC.digest("SHA256", key, text)].pack("m0").tr("+/", "-_").delete("=")
  end
  "#{server}/#{parts.join(",")}/#{url}"
end
