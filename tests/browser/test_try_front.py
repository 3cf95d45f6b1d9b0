from tests.browser.conftest import Lab
CELL='''
import json, time, pathlib, anywidget
S=pathlib.Path("/work/wt/front/widgets/static"); D=json.load(open("/tmp/sample.json"))
class V(anywidget.AnyWidget):
    _esm=(S/"viewer.js").read_text()
    def __init__(self):
        super().__init__(); self.rev=0; self.msgs=[]; self.on_msg(self.got); self.renderer="graphviz"
    def scene(self, drop=0):
        self.rev+=1; m=json.loads(json.dumps(D["message"])); m["scene"]["revision"]=self.rev; m["sent_at"]=time.time()*1000
        m["renderer"]=self.renderer; m["mermaid"]=D["mermaid"] if self.renderer=="mermaid" else ""
        if drop: m["scene"]["nodes"]=m["scene"]["nodes"][:-drop]
        self.send(m)
    def got(self,_,m,b):
        self.msgs.append(m); t=m["type"]
        if t=="ready": self.scene(10)
        elif t=="need_engine": self.send({"type":"engine","engine":m["engine"]},buffers=[(S/f"{m['engine']}.js.gz").read_bytes()])
        elif t=="inspect" and m["id"] in D["inspections"]: self.send({"type":"inspection","inspection":D["inspections"][m["id"]]})
        elif t=="renderer": self.renderer=m["renderer"]; self.scene()
v=V()
'''
def test_try(lab: Lab) -> None:
    nb=lab.open_cells([CELL+"v","from sidecar import Sidecar\nsc=Sidecar(title='Graph', anchor='split-right')\nwith sc:\n    display(v)","import time\nv.scene()\n","print([x for x in v.msgs if x['type']=='drawn'])"])
    p=nb.page
    nb.run_all()
    p.wait_for_timeout(1000); p.screenshot(path='/tmp/lab0.png'); print(p.evaluate("[...document.querySelectorAll('.jp-OutputArea-output')].map(e=>e.textContent.slice(0,300))")); print(lab.traffic)
    p.wait_for_selector('.graphloupe[data-busy="false"]')
    p.wait_for_timeout(1500)
    print(p.evaluate("[...document.querySelectorAll('.graphloupe')].map(e=>[e.offsetWidth,e.offsetHeight,JSON.stringify(e.dataset)])"))
    p.screenshot(path="/tmp/lab1.png")
    side=p.locator(".graphloupe").nth(1)
    side.locator('[data-node-id="model/MatMul"]').first.click()
    p.wait_for_timeout(800)
    p.keyboard.press("ArrowDown"); p.keyboard.press("ArrowDown"); p.keyboard.press("f")
    p.wait_for_timeout(500)
    p.screenshot(path="/tmp/lab2.png")
    side.locator('[data-renderer-choice=mermaid]').click()
    p.wait_for_timeout(2500)
    p.evaluate("jupyterapp.commands.execute('apputils:change-theme',{theme:'JupyterLab Dark'})")
    p.wait_for_timeout(1500)
    p.screenshot(path="/tmp/lab3.png")
    print(p.evaluate("[...document.querySelectorAll('.graphloupe')].map(e=>[e.offsetWidth,e.offsetHeight,JSON.stringify(e.dataset)])"))
    print(p.evaluate("(()=>{let e=document.querySelectorAll('.graphloupe')[1],o=[];while(e&&o.length<12){o.push(e.className+' '+e.offsetHeight+' '+getComputedStyle(e).display+' '+getComputedStyle(e).overflow);e=e.parentElement}return o})()"))
