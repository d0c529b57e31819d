"""Adapters of PEFT beside packed weights of small random models."""
import pytest
import tilusc

peft = pytest.importorskip("peft")
from tilusc.nn import QuantizedLinear  # noqa: E402
from tilusc.peft import LoraQuantizedLinear, register  # noqa: E402
from tilusc.transformers import TilusConfig  # noqa: E402
from tiny_models import TOKENS, load, logits, save, torch, transformers  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Unsupported layer type")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TARGETS = ["q_proj", "v_proj", "down_proj"]


@pytest.fixture
def model(tmp_path):
    return load(save(tmp_path, "Llama"), dtype=torch.bfloat16, device_map=DEVICE,
                quantization_config=TilusConfig("u4", group=64))


def adapted(model, **options):
    return peft.get_peft_model(model, register(peft.LoraConfig(r=4, target_modules=TARGETS, **options)))


def test_adapters_learn(model, tmp_path):
    before, tokens = logits(model), TOKENS.to(DEVICE)
    model.enable_input_require_grads()
    model.gradient_checkpointing_enable()
    model = adapted(model, lora_dropout=0.0)
    assert torch.equal(logits(model), before)           # of adapters whose second matrices are 0
    assert sum(isinstance(module, LoraQuantizedLinear) for module in model.modules()) == 3
    trained = {name for name, value in model.named_parameters() if value.requires_grad}
    assert len(trained) == 6 and all("lora_" in name for name in trained)
    assert all(value.device.type == DEVICE for value in model.parameters())
    optimizer = torch.optim.AdamW((value for value in model.parameters() if value.requires_grad), 0.02)
    model.train()
    losses = []
    for _ in range(8):
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    model.eval()
    after = logits(model)
    with model.disable_adapter():
        assert torch.equal(logits(model), before)
    model.save_pretrained(tmp_path / "adapters")
    fresh = load(tmp_path, dtype=torch.bfloat16, device_map=DEVICE, quantization_config=TilusConfig("u4", group=64))
    config = register(peft.LoraConfig.from_pretrained(tmp_path / "adapters"))
    assert torch.equal(logits(peft.PeftModel.from_pretrained(fresh, tmp_path / "adapters", config=config)), after)
    with pytest.raises(tilusc.Error, match="adapters are not merged into packed weights"):
        model.merge_and_unload()


def test_trainer_takes_it(model, tmp_path):
    """transformers' own loop, which asks the quantizer whether it has gradients."""
    pytest.importorskip("accelerate")
    with pytest.raises(ValueError, match="attach trainable adapters"):
        transformers.Trainer(model, transformers.TrainingArguments(str(tmp_path), report_to="none", use_cpu=DEVICE == "cpu"))
    model = adapted(model)
    rows = [{"input_ids": TOKENS[0], "labels": TOKENS[0]}] * 4
    arguments = transformers.TrainingArguments(str(tmp_path), max_steps=3, per_device_train_batch_size=2, learning_rate=0.05,
                                               report_to="none", use_cpu=DEVICE == "cpu", save_strategy="no", bf16=True,
                                               logging_steps=1)
    trainer = transformers.Trainer(model, arguments, train_dataset=rows)
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses) == 3 and losses[-1] < losses[0]


def test_what_adapters_do_not_take(model):
    for options, why in (({"use_dora": True}, "use_dora"), ({"init_lora_weights": "pissa"}, "init_lora_weights='pissa'")):
        with pytest.raises(tilusc.ArgumentError, match=f"adapters beside packed weights do not take {why}"):
            adapted(model, **options)
    problem = tilusc.matmul.Problem("u4", 64, 128, residual=True)
    layer = QuantizedLinear(problem, torch.zeros(1, dtype=torch.uint8))
    with pytest.raises(tilusc.ArgumentError, match="adapters are of layers of one argument"):
        LoraQuantizedLinear(layer, "default", peft.LoraConfig(), 4)
