# The address of a rendition, signed where there is a key.
require "openssl"

def gifreel(source, server: "", key: "", format: "mp4", **given)
  encode = ->(byte) { "%%%02X" % byte.ord }
  url = source.b.sub(/#.*/mn, "").gsub(/[^!#-;=?-\[\]_a-z~]/n, &encode)
  pairs = given.compact.map { |name, value| "#{name}=#{value}".b }.sort
  parts = [format] + pairs.map { |pair| pair.gsub(/[^-.0-:=A-Z_a-z~]/n, &encode) }
  unless key.empty?
    text = [format, pairs.map { |pair| pair.gsub(",", ",,") }.join(","), url].join("\n")
    parts << "sig=" + [OpenSSL::HMAC.digest("SHA256", key, text)].pack("m0").tr("+/", "-_").delete("=")
  end
  "#{server}/#{parts.join(",")}/#{url}"
end
