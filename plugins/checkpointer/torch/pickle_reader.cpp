#include "pickle_reader.hpp"

#include "bytes.hpp"
#include "pickle_opcodes.hpp"

#include <lhost/sdk/plugin.hpp>

#include <algorithm>
#include <unordered_map>

namespace torch_file {
namespace {

using Kind = Value::Kind;

class Machine {
 public:
  explicit Machine(std::string_view bytes) : bytes_(bytes) {}
  Document run();

 private:
  [[noreturn]] void damaged(const std::string& what) const {
    throw lhost::Error(LH_DATA_LOSS, "damaged: the pickle has " + what + " at byte " + std::to_string(at_) +
                                         " of " + std::to_string(bytes_.size()) +
                                         "; torch.save writes nothing of the kind");
  }

  std::string_view take(uint64_t n) {
    if (n > bytes_.size() - at_) damaged("an item that ends past its end");
    at_ += n;
    return bytes_.substr(at_ - n, n);
  }
  template <class T>
  T number() {
    return get<T>(take(sizeof(T)).data());
  }
  template <class Length>
  std::string_view sized() {
    return take(number<Length>());
  }
  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) damaged("a name without end");
    const std::string_view text = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return text;
  }

  void push(Value* v) { stack_.push_back(v); }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Value* top() const {
    if (stack_.size() <= floor()) damaged("an operation without an operand");
    return stack_.back();
  }
  Value* pop() {
    Value* v = top();
    stack_.pop_back();
    return v;
  }
  std::vector<Value*> pop_to_mark() {
    if (marks_.empty()) damaged("an end of items without their beginning");
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Value*> items(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return items;
  }

  bool scalar(uint8_t op);
  bool text(uint8_t op);
  bool tuple_or_mark(uint8_t op);
  bool container(uint8_t op);
  bool memo(uint8_t op);
  bool object(uint8_t op);

  void push_integer(int64_t n, Kind kind = Kind::integer) {
    push(document_.make(kind));
    stack_.back()->integer = n;
  }
  void push_long(std::string_view bytes);
  void push_text(std::string_view text) {
    if (is_utf8(text)) push(document_.make_text(Kind::text, text));
    else push_unknown("a text that is not UTF-8");
  }
  void push_unknown(std::string_view what) { push(document_.make_text(Kind::unknown, what)); }
  void push_global(std::string_view module, std::string_view name) {
    // STACK_GLOBAL copies texts that three bytes can name again and again.
    if (module.size() + name.size() > 1000)
      damaged("a name of " + std::to_string(module.size()) + " letters");
    push(document_.make_text(Kind::global, document_.keep(std::string(module) + "." + std::string(name))));
  }
  void push_tuple(size_t n) {
    Value* tuple = document_.make(Kind::tuple);
    tuple->items.resize(n);
    for (size_t i = n; i > 0; --i) tuple->items[i - 1] = pop();
    push(tuple);
  }
  void add_items(Kind kind, const std::vector<Value*>& items);
  void push_persistent();
  void push_call();
  void remember(uint32_t id) { memo_[id] = top(); }
  void recall(uint32_t id) {
    const auto i = memo_.find(id);
    if (i == memo_.end()) damaged("a reference to an object that it does not hold");
    push(i->second);
  }

  std::string_view bytes_;
  size_t at_ = 0;
  Document document_;
  std::vector<Value*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, Value*> memo_;
};

Document Machine::run() {
  for (;;) {
    const auto op = number<uint8_t>();
    if (op == kStop) break;
    if (!scalar(op) && !text(op) && !tuple_or_mark(op) && !container(op) && !memo(op) && !object(op))
      damaged("the unknown operation " + std::to_string(op));
  }
  document_.root = pop();
  return std::move(document_);
}

bool Machine::scalar(uint8_t op) {
  switch (op) {
    case kProto:
      take(1);
      break;
    case kFrame:
      take(8);
      break;
    case kNone:
      push(document_.make(Kind::none));
      break;
    case kNewTrue:
      push_integer(1, Kind::boolean);
      break;
    case kNewFalse:
      push_integer(0, Kind::boolean);
      break;
    case kBinInt1:
      push_integer(number<uint8_t>());
      break;
    case kBinInt2:
      push_integer(number<uint16_t>());
      break;
    case kBinInt:
      push_integer(number<int32_t>());
      break;
    case kLong1:
      push_long(sized<uint8_t>());
      break;
    case kLong4:
      push_long(sized<uint32_t>());
      break;
    case kBinFloat: {
      const uint64_t bits = __builtin_bswap64(number<uint64_t>());
      push(document_.make(Kind::real));
      std::memcpy(&stack_.back()->real, &bits, sizeof bits);
      break;
    }
    default:
      return false;
  }
  return true;
}

// Two's complement, little-endian, any length.
void Machine::push_long(std::string_view bytes) {
  if (bytes.size() > 8) return push_unknown("an integer of more than 64 bits");
  const bool negative = !bytes.empty() && (bytes.back() & 0x80) != 0;
  uint64_t n = negative ? ~uint64_t{0} : 0;
  std::memcpy(&n, bytes.data(), bytes.size());
  push_integer(static_cast<int64_t>(n));
}

bool Machine::text(uint8_t op) {
  constexpr std::string_view kBytes = "bytes";
  switch (op) {
    case kBinUnicode:
      push_text(sized<uint32_t>());
      break;
    case kShortBinUnicode:
      push_text(sized<uint8_t>());
      break;
    case kBinUnicode8:
      push_text(sized<uint64_t>());
      break;
    case kBinString:
      push_text(sized<uint32_t>());
      break;
    case kShortBinString:
      push_text(sized<uint8_t>());
      break;
    case kBinBytes:
      sized<uint32_t>(), push_unknown(kBytes);
      break;
    case kShortBinBytes:
      sized<uint8_t>(), push_unknown(kBytes);
      break;
    case kBinBytes8:
      sized<uint64_t>(), push_unknown(kBytes);
      break;
    case kByteArray8:
      sized<uint64_t>(), push_unknown("a bytearray");
      break;
    case kNextBuffer:
      push_unknown("a buffer outside the pickle");
      break;
    case kReadonlyBuffer:
      top();
      break;
    default:
      return false;
  }
  return true;
}

bool Machine::tuple_or_mark(uint8_t op) {
  switch (op) {
    case kMark:
      marks_.push_back(stack_.size());
      break;
    case kPop:
      // In CPython's machine a mark may be what POP takes away.
      if (!marks_.empty() && stack_.size() == marks_.back()) marks_.pop_back();
      else pop();
      break;
    case kPopMark:
      pop_to_mark();
      break;
    case kEmptyTuple:
      push_tuple(0);
      break;
    case kTuple1:
      push_tuple(1);
      break;
    case kTuple2:
      push_tuple(2);
      break;
    case kTuple3:
      push_tuple(3);
      break;
    case kTuple: {
      Value* tuple = document_.make(Kind::tuple);
      tuple->items = pop_to_mark();
      push(tuple);
      break;
    }
    default:
      return false;
  }
  return true;
}

bool Machine::container(uint8_t op) {
  switch (op) {
    case kEmptyList:
    case kEmptySet:
      push(document_.make(Kind::list));
      break;
    case kEmptyDict:
      push(document_.make(Kind::dict));
      break;
    case kAppend: {
      Value* item = pop();
      add_items(Kind::list, {item});
      break;
    }
    case kAppends:
    case kAddItems:
      add_items(Kind::list, pop_to_mark());
      break;
    case kFrozenSet: {
      Value* set = document_.make(Kind::list);
      set->items = pop_to_mark();
      push(set);
      break;
    }
    case kSetItem: {
      Value* item = pop();
      Value* key = pop();
      add_items(Kind::dict, {key, item});
      break;
    }
    case kSetItems:
      add_items(Kind::dict, pop_to_mark());
      break;
    default:
      return false;
  }
  return true;
}

// What is added to an object of unknown type is lost with it.
void Machine::add_items(Kind kind, const std::vector<Value*>& items) {
  Value* target = top();
  if (target->kind == Kind::unknown) return;
  if (target->kind != kind) damaged("items for something that takes none");
  if (kind == Kind::dict && items.size() % 2 != 0) damaged("a key without a value");
  target->items.insert(target->items.end(), items.begin(), items.end());
}

bool Machine::memo(uint8_t op) {
  switch (op) {
    case kBinPut:
      remember(number<uint8_t>());
      break;
    case kLongBinPut:
      remember(number<uint32_t>());
      break;
    case kMemoize:
      remember(static_cast<uint32_t>(memo_.size()));
      break;
    case kBinGet:
      recall(number<uint8_t>());
      break;
    case kLongBinGet:
      recall(number<uint32_t>());
      break;
    default:
      return false;
  }
  return true;
}

bool Machine::object(uint8_t op) {
  switch (op) {
    case kGlobal: {
      const std::string_view module = line();
      push_global(module, line());
      break;
    }
    case kStackGlobal: {
      const Value* name = pop();
      push_global(pop()->text, name->text);
      break;
    }
    case kBinPersId:
      push_persistent();
      break;
    case kReduce:
      push_call();
      break;
    case kNewObjEx:
      pop();  // the keywords
      [[fallthrough]];
    case kNewObj:  // a class is called like any other function
      push_call();
      break;
    case kBuild:  // attributes of an object are not data of ours
      pop(), top();
      break;
    case kExt1:
      take(1), push_unknown("an extension object");
      break;
    case kExt2:
      take(2), push_unknown("an extension object");
      break;
    case kExt4:
      take(4), push_unknown("an extension object");
      break;
    default:
      return false;
  }
  return true;
}

void Machine::push_persistent() {
  const Value* id = pop();
  if (id->kind != Kind::tuple || id->items.size() != 5 || id->items[0]->text != "storage")
    return push_unknown("an object outside the pickle");
  Value* storage = document_.make(Kind::storage);
  storage->items = id->items;
  push(storage);
}

void Machine::push_call() {
  const Value* arguments = pop();
  const Value* function = pop();
  push(call(document_, *function, *arguments));
}

}  // namespace

Document read_pickle(std::string_view bytes) { return Machine(bytes).run(); }

}  // namespace torch_file
