// Answers questions about definitions with TensorFlow's own C++ functions, which its Python API does not offer.
// A request is: 4-byte count of parts, then each part as 4-byte length and bytes (big endian). The first part is the kind of
// question. The answer has the same form.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_def_builder.h"
#include "tensorflow/core/framework/op_def_util.h"

using Parts = std::vector<std::string>;

static bool ReadNumber(uint32_t* number) {
  unsigned char bytes[4];
  if (std::fread(bytes, 1, 4, stdin) != 4) return false;
  *number = uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
  return true;
}

static void WriteNumber(uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) std::putchar(number >> shift & 0xff);
}

static bool ReadParts(Parts* parts) {
  uint32_t count;
  if (!ReadNumber(&count)) return false;
  parts->resize(count);
  for (std::string& part : *parts) {
    uint32_t size;
    if (!ReadNumber(&size)) return false;
    part.resize(size);
    if (size != 0 && std::fread(part.data(), 1, size, stdin) != size) return false;
  }
  return true;
}

static std::string Text(const absl::Status& status) { return std::string(status.message()); }

// Parts: the kind, then specs such as "Aname: int" (attr), "Ix: T" (input), "Oy: T" (output), "Dtext" (doc).
static Parts Build(const Parts& parts) {
  tensorflow::OpDefBuilder builder("Test");
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string spec = parts[i].substr(1);
    switch (parts[i][0]) {
      case 'A': builder.Attr(spec); break;
      case 'I': builder.Input(spec); break;
      case 'O': builder.Output(spec); break;
      case 'D': builder.Doc(spec); break;
    }
  }
  tensorflow::OpRegistrationData data;
  const absl::Status status = builder.Finalize(&data);
  if (!status.ok()) return {Text(status)};
  return {"", tensorflow::SummarizeOpDef(data.op_def), data.op_def.SerializeAsString(), Text(tensorflow::ValidateOpDef(data.op_def))};
}

static Parts Op(const Parts& parts) {
  tensorflow::OpDef op_def;
  if (!op_def.ParseFromString(parts[1])) return {"unreadable"};
  return {"", tensorflow::SummarizeOpDef(op_def), Text(tensorflow::ValidateOpDef(op_def))};
}

static Parts Node(const Parts& parts) {
  tensorflow::NodeDef node_def;
  tensorflow::OpDef op_def;
  if (!node_def.ParseFromString(parts[1]) || !op_def.ParseFromString(parts[2])) return {"unreadable"};
  tensorflow::DataTypeVector inputs, outputs;
  const absl::Status types = tensorflow::InOutTypesForNode(node_def, op_def, &inputs, &outputs);
  return {"", tensorflow::SummarizeNodeDef(node_def), Text(tensorflow::ValidateExternalNodeDefSyntax(node_def)),
          Text(tensorflow::ValidateNodeDef(node_def, op_def)), Text(types),
          tensorflow::DataTypeVectorString(inputs) + " -> " + tensorflow::DataTypeVectorString(outputs)};
}

static Parts Value(const Parts& parts) {
  tensorflow::AttrValue value;
  if (!value.ParseFromString(parts[1])) return {"unreadable"};
  return {"", tensorflow::SummarizeAttrValue(value), Text(tensorflow::AttrValueHasType(value, parts[2]))};
}

static Parts Answer(const Parts& parts) {
  if (parts[0] == "build") return Build(parts);
  if (parts[0] == "op") return Op(parts);
  if (parts[0] == "node") return Node(parts);
  if (parts[0] == "value") return Value(parts);
  return {"unknown question"};
}

int main() {
  Parts parts;
  while (ReadParts(&parts)) {
    const Parts answer = Answer(parts);
    WriteNumber(answer.size());
    for (const std::string& part : answer) {
      WriteNumber(part.size());
      std::fwrite(part.data(), 1, part.size(), stdout);
    }
    std::fflush(stdout);
  }
}
